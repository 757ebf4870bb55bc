//! A service in a process of its own, which may die.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{self, ChildStdout, Command};

use super::Error;
use super::client::Client;
use crate::setup::Setup;

pub(super) struct Child {
    pub(super) client: Client,
    process: process::Child,
    /// Nobody reads on; a program that cannot write would end.
    _says: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts the program with its data in `folder`, and waits until it says where it listens.
    pub(super) async fn start(program: &Path, folder: &Path, setup: &Setup) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let mut process = Command::new(program)
            .args(["--listen=127.0.0.1:0", "--data=."])
            .args(setup.arguments())
            .arg("serve")
            // What a dying process may leave, a core for instance, is taken away with the folder.
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut says = BufReader::new(process.stdout.take().ok_or("the service cannot be heard")?).lines();
        let first = says.next_line().await?.ok_or("the service ended at once")?;
        let address = first.split_once("http://").and_then(|(_, rest)| rest.split_once(". "));
        let address = address.ok_or_else(|| format!("the service does not say where it listens: {first}"))?.0;
        Ok(Self { client: Client::of(address.parse()?), process, _says: says })
    }

    /// Waits until it has died.
    pub(super) async fn died(mut self) -> Result<(), Error> {
        match tokio::time::timeout(PATIENCE, self.process.wait()).await?? {
            ended if ended.success() => Err("the service ended well, and should have died".into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn close(mut self) -> Result<(), Error> {
        Ok(self.process.kill().await?)
    }
}

/// One that lives on is a wrong demo, and not one that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

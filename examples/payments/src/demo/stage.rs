//! Where the scenes are played: services in this process, and services in processes of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::child::Child;
use super::client::Client;
use crate::service::Service;
use crate::setup::Setup;

pub(super) struct Stage {
    /// Of the service that most scenes are played with.
    pub(super) client: Client,
    service: Service,
    program: PathBuf,
    folder: PathBuf,
}

/// A service of one scene's own, in this process.
pub(super) struct Shop {
    pub(super) client: Client,
    pub(super) service: Service,
}

impl Stage {
    pub(super) async fn open(program: &Path, folder: &Path) -> Result<Self, Error> {
        let Shop { client, service } = shop(&folder.join("main"), &Setup::default()).await?;
        Ok(Self { client, service, program: program.to_owned(), folder: folder.to_owned() })
    }

    /// A service with its own data and set-up.
    pub(super) async fn shop(&self, scene: &str, setup: &Setup) -> Result<Shop, Error> {
        shop(&self.folder.join(scene), setup).await
    }

    /// The same as a process; a second one of the same name goes on with the data of the first.
    pub(super) async fn child(&self, scene: &str, setup: &Setup) -> Result<Child, Error> {
        Child::start(&self.program, &self.folder.join(scene), setup).await
    }

    pub(super) async fn close(self) {
        self.service.stop(PATIENCE).await;
    }
}

impl Shop {
    pub(super) async fn close(self) {
        self.service.stop(PATIENCE).await;
    }
}

async fn shop(folder: &Path, setup: &Setup) -> Result<Shop, Error> {
    let service = Service::start(FREE_PORT.into(), folder, setup).await?;
    Ok(Shop { client: Client::of(service.address()), service })
}

/// Whichever port is free.
const FREE_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_stage_frees_its_port() {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::open(Path::new("payments"), folder.path()).await.unwrap();
        let address = stage.client.address();
        assert!(TcpListener::bind(address).is_err(), "the service listens");
        stage.close().await;
        TcpListener::bind(address).unwrap();
    }
}

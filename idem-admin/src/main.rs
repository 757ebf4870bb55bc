//! A person's part in idem, as a command line: look at the records that are not settled, decide on those that are parked,
//! bring a schema up to date, see whether a database is in order. `docs/operations.md` says when.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a person")]

mod args;
mod check;
mod database;
mod decide;
mod error;
mod inspect;
mod list;
mod listed;
mod show;
mod verdict;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::args::{Args, Command};
use crate::database::Database;
use crate::error::AdminError;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.show(args.json);
            error.exit_code()
        }
    }
}

async fn run(args: &Args) -> Result<(), AdminError> {
    let url = args.database.as_deref().ok_or(AdminError::NoDatabase)?;
    let database: Database = url.parse()?;
    match &args.command {
        Command::List(asked) => list::run(&database, asked, args.json).await,
        Command::Inspect(asked) => inspect::run(&database, asked, args.json).await,
        Command::Resolve(asked) => decide::resolve(&database, asked, args.json).await,
        Command::AskAgain(asked) => decide::ask_again(&database, asked, args.json).await,
        Command::ResolveAll(asked) => decide::resolve_all(&database, asked, args.json).await,
        Command::AskAgainAll(asked) => decide::ask_again_all(&database, asked, args.json).await,
        Command::Migrate => check::migrate(&database, args.json).await,
        Command::Check(asked) => check::run(&database, asked, args.json).await,
    }
}

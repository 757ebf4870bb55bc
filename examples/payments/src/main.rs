//! A payment service on idem: `serve` runs it, `demo` shows what each second request gets.

#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use payments::demo;
use payments::service::Service;
use payments::setup::Setup;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// A payment service whose second requests are safe.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Where the service listens.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,

    /// The folder of its SQLite files; made if it is not there.
    #[arg(long, default_value = "payments-data")]
    data: PathBuf,

    #[command(flatten)]
    setup: Setup,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the service until Ctrl-C (the default).
    Serve,
    /// Starts a service of its own on a free port, sends it every kind of second request, shows what each got, and
    /// leaves nothing behind.
    Demo,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let demo = matches!(args.command, Some(Command::Demo));
    // The demo provokes failures on purpose; its table tells of them, the log would only repeat it.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| if demo { "off" } else { "info" }.into());
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let ran = if demo { show().await } else { serve(&args).await.map(|()| ExitCode::SUCCESS) };
    match ran {
        Ok(code) => code,
        Err(error) => {
            eprintln!("payments: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn show() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let report = demo::run(&std::env::current_exe()?).await?;
    println!("{report}");
    Ok(report.exit_code())
}

async fn serve(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let service = Service::start(args.listen, &args.data, &args.setup).await?;
    println!("{}", what_to_try(service.address()));
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        asked = tokio::signal::ctrl_c() => asked?,
        _ = terminate.recv() => {}
    }
    println!("Finishing what is under way, for ten seconds at most.");
    service.stop(Duration::from_secs(10)).await;
    Ok(())
}

fn what_to_try(address: SocketAddr) -> String {
    format!(
        r#"Payments on http://{address}. Send the first line twice; then change the amount and send it again.

  curl -i http://{address}/payments -H 'Authorization: Bearer acme-test-key' \
    -H 'Idempotency-Key: order-1041-invoice-1' -H 'Content-Type: application/json' \
    -d '{{"account_id":"acc_1","amount":"10.00","currency":"EUR","merchant_reference":"order-1041"}}'

  curl http://{address}/provider/charges          # what the payment provider has really charged
  curl -X PUT http://{address}/provider/next -H 'Content-Type: application/json' \
    -d '{{"delay_ms":5000}}'                        # the next charge takes that long: send two at once, or hang up
  curl -X PUT http://{address}/provider/next -H 'Content-Type: application/json' \
    -d '{{"fault":"lost_answer"}}'                  # it charges, and its answer gets lost: retry with the same key
  curl -X PUT http://{address}/provider/next -H 'Content-Type: application/json' \
    -d '{{"fault":"crash"}}'                        # it charges, and this service dies: start it again, and retry

Ctrl-C ends it."#
    )
}

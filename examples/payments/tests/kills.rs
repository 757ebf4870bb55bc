//! The whole service, killed over and over while its clients go on: `kill -9`, and started again on the same files.

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use payments::ledger::Ledger;
use payments::provider::{Kind, Provider};
use sqlx::sqlite::SqlitePool;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

type Failed = Box<dyn Error + Send + Sync>;

const CLIENTS: usize = 8;
const KILLS: usize = 20;

/// Starts the service, and waits until it listens.
fn start(address: SocketAddr, folder: &Path, provider: &str) -> std::io::Result<Child> {
    let quick = ["--lease=300", "--grace=1", "--look-every=200", "--backoff=50", "--quiescence=100"];
    Command::new(env!("CARGO_BIN_EXE_payments"))
        .arg(format!("--listen={address}"))
        .arg("--data=.")
        .args(quick)
        .arg(format!("--provider={provider}"))
        .arg("serve")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// One payment, sent until its answer is a final one. Its key is its account too.
async fn pay(http: &reqwest::Client, address: SocketAddr, key: &str) -> Result<u16, Failed> {
    let body = serde_json::json!({
        "account_id": key, "amount": "10.00", "currency": "EUR", "merchant_reference": key,
    });
    loop {
        let request = http.post(format!("http://{address}/payments")).bearer_auth("acme-test-key");
        let sent = request.header("idempotency-key", key).json(&body).send().await;
        if let Ok(answer) = sent {
            let status = answer.status().as_u16();
            let next =
                answer.json::<serde_json::Value>().await.ok().and_then(|body| Some(body["next"].as_str()?.to_owned()));
            match (status, next.as_deref()) {
                (409 | 503, Some("wait" | "same_key")) => {}
                // The head came, and the process died before the rest.
                (200..=299, _) => return Ok(status),
                other => return Err(format!("{key}: {other:?}").into()),
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_over_and_over_charges_and_books_each_payment_once() -> Result<(), Failed> {
    killed_over_and_over("dedupes", Kind::Dedupes).await
}

/// Here a second request would be a second charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_over_and_over_asks_a_provider_that_does_not_dedupe() -> Result<(), Failed> {
    killed_over_and_over("query-only", Kind::QueryOnly).await
}

async fn killed_over_and_over(provider: &str, kind: Kind) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut service = start(address, folder.path(), provider)?;
    let over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (over, http) = (Arc::clone(&over), reqwest::Client::new());
        clients.spawn(async move {
            let mut keys = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let key = format!("client-{client}-{}", keys.len());
                pay(&http, address, &key).await?;
                keys.push(key);
            }
            Ok::<_, Failed>(keys)
        });
    }
    for _ in 0..KILLS {
        sleep(Duration::from_millis(fastrand::u64(200..700))).await;
        service.kill()?;
        service.wait()?;
        service = start(address, folder.path(), provider)?;
    }
    over.store(true, Ordering::Relaxed);
    let mut keys = Vec::new();
    let finish = async {
        while let Some(done) = clients.join_next().await {
            keys.extend(done??);
        }
        Ok::<_, Failed>(())
    };
    timeout(Duration::from_secs(120), finish).await??;
    service.kill()?;
    service.wait()?;
    assert!(keys.len() >= CLIENTS * 2, "hardly anything was paid between the kills: {}", keys.len());

    let provider = Provider::open(&folder.path().join("provider.sqlite"), kind, Duration::ZERO).await?;
    let mut charged: Vec<String> = provider.charges().await?.into_iter().map(|made| made.account).collect();
    charged.sort_unstable();
    keys.sort_unstable();
    assert_eq!(charged, keys, "what was charged, and what was asked for");
    let ledger = Ledger::open(&folder.path().join("payments.sqlite")).await?;
    let count = "SELECT count(*), count(DISTINCT account_id) FROM payments JOIN entries ON payment_id = id
        WHERE state = 'paid'";
    let rows: (i64, i64) = sqlx::query_as(count).fetch_one(ledger.pool()).await?;
    assert_eq!(rows, (i64::try_from(keys.len())?, i64::try_from(keys.len())?), "payments that are paid and booked");
    for file in ["payments.sqlite", "provider.sqlite", "office.sqlite"] {
        let pool = SqlitePool::connect(&format!("sqlite:{}", folder.path().join(file).display())).await?;
        let said: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&pool).await?;
        assert_eq!(said, "ok", "{file}");
    }
    Ok(())
}

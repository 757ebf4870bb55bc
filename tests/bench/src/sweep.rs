//! `idem-bench sweep`: what claims feel of cleaning up.
//!
//! A table of a million completed records, 600,000 of them with their window over. Eight callers claim 400 new keys a
//! second, before and while the engine sweeps in its batches; then the same beside one `DELETE` of all that is over, which
//! is what is written by hand. A latency is counted from the moment at which its claim was to be sent. The first look of a
//! worker at such a table is timed too: it walks along every record once.

use std::time::Duration;

use idem_cluster::Database;
use idem_core::retention::Sweep;
use idem_core::store::{Claimed, Claiming, NewClaim, Recovering};
use idem_core::{CommandHash, Engine, OwnerToken, Scope, Tenant};
use idem_sqlx::PgStore;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::server;

type Failed = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn run(rows: u64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any machine that can be measured");
    if let Err(error) = runtime.block_on(measure(rows)) {
        println!("sweep: {error}");
    }
}

async fn measure(rows: u64) -> Result<(), Failed> {
    let database = server::database().await;
    let store = PgStore::open(database.options()).await?;
    let over = rows * 6 / 10;

    load(&database, rows, over).await;
    let start = Instant::now();
    store.due(Duration::ZERO, None, 1).await?;
    let walk = start.elapsed();

    println!("| {rows} rows, {over} of them over | claims | p50 µs | p99 µs | slowest µs | seconds |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    claims(&store, "to warm up", tokio::time::sleep(WARM_UP)).await?;
    let (before, ()) = claims(&store, "before the sweep", tokio::time::sleep(PHASE)).await?;
    let engine = Engine::builder(store.clone()).build()?;
    // Without a bound for the round: all that is over, in the batches and with the pauses of every round.
    let all = Sweep { batches: u32::MAX, ..Sweep::default() };
    let sweeping = tokio::spawn(async move { engine.sweep(&all).await });
    let (during, swept) = claims(&store, "during the sweep", sweeping).await?;
    swept??;
    let swept = database.number("SELECT count(*) FROM idem.idempotency_requests WHERE status = 'expired'").await;
    if swept != over.cast_signed() {
        return Err(format!("{swept} of {over} were swept").into());
    }

    load(&database, rows, over).await;
    claims(&store, "to warm up again", tokio::time::sleep(WARM_UP)).await?;
    let (before_unbounded, ()) = claims(&store, "before the DELETE", tokio::time::sleep(PHASE)).await?;
    let delete = database.run("DELETE FROM idem.idempotency_requests WHERE expires_at <= now()");
    let (unbounded, ()) = claims(&store, "during the DELETE", delete).await?;

    let each = walk.as_nanos() / u128::from(rows.max(1));
    println!("\na worker's first walk along {rows} records: {} ms, {each} ns each", walk.as_millis());
    println!("\nratios: p99={:.2} unbounded_p99={:.2}", during / before, unbounded / before_unbounded);
    Ok(())
}

/// Claims until `beside` is done; prints a row, and gives the 99th percentile with what that gave.
async fn claims<T>(store: &PgStore, name: &str, beside: impl Future<Output = T>) -> Result<(f64, T), Failed> {
    let start = Instant::now();
    let (stop, stopped) = watch::channel(());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            tokio::spawn(claim_on(store.clone(), format!("{name} {caller}").replace(' ', "-"), stopped.clone()))
        })
        .collect();
    let done = beside.await;
    drop((stop, stopped));
    let mut latencies = Vec::new();
    for caller in callers {
        latencies.append(&mut caller.await??);
    }
    let took = start.elapsed();
    latencies.sort_unstable();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_micros();
    println!("| {name} | {} | {} | {} | {} | {:.1} |", latencies.len(), at(0.5), at(0.99), at(1.0), took.as_secs_f64());
    Ok((at(0.99) as f64, done))
}

async fn claim_on(store: PgStore, name: String, stopped: watch::Receiver<()>) -> Result<Vec<Duration>, Failed> {
    let mut ticks = interval(EVERY);
    // Whoever waits is not forgiven: the next ones are late too.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut latencies = Vec::new();
    loop {
        let due = ticks.tick().await;
        let claim = NewClaim {
            scope: Scope::new(
                Tenant::new("tenant-1")?,
                "create_payment",
                format!("{name}-{}", latencies.len()).parse()?,
            ),
            hash: CommandHash::from_parts(1, 1, [7; 32])?,
            owner: OwnerToken::random(),
            lease: Duration::from_secs(30),
        };
        let Claimed::Inserted { .. } = store.claim(&claim).await? else { return Err("a new key was not new".into()) };
        latencies.push(due.elapsed());
        if stopped.has_changed().is_err() {
            return Ok(latencies);
        }
    }
}

/// A table as a day of payments leaves it: in the order of their time, frozen, with figures for the planner.
async fn load(database: &Database, rows: u64, over: u64) {
    database.run("TRUNCATE idem.idempotency_requests, idem.idempotency_calls").await;
    database.run("UPDATE idem.idempotency_progress SET at = '-infinity' WHERE name = 'due'").await;
    database
        .run(format!(
            "INSERT INTO idem.idempotency_requests (
                tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence,
                owner_token, revision, attempts, created_at, updated_at, finished_at, expires_at, body_until, purge_at,
                sweep_at, response_status, response_headers, response_body)
            SELECT 'tenant-1', 'create_payment', 'old-' || lpad(n::text, 12, '0'), decode(repeat('07', 32), 'hex'), 1, 1,
                'completed', 1, gen_random_uuid(), 2, 1, made, made, made, made + interval '1 day', made + interval '1 day',
                made + interval '31 days', made + interval '1 day', 201, '', convert_to(repeat('x', 600), 'UTF8')
            FROM generate_series(1, {rows}) AS n, LATERAL (
                SELECT now() - CASE WHEN n <= {over} THEN interval '25 hours' ELSE interval '12 hours' END
                    + n * interval '1 microsecond' AS made) AS times"
        ))
        .await;
    database.run("VACUUM (FREEZE, ANALYZE) idem.idempotency_requests").await;
    database.run("CHECKPOINT").await;
}

const CALLERS: usize = 8;
const EVERY: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_secs(5);
const PHASE: Duration = Duration::from_secs(20);

//! `idem-bench claims`: what a store does in a second, beside the database's own least.
//!
//! PostgreSQL: [`PgStore`](idem_sqlx::PgStore), as an application uses it, against `pgbench -M prepared` with the very
//! statements that the store sends, on one private cluster with `fsync` on. Only replays are held to less than the store
//! sends: there `pgbench` reads a few columns by their key nine times of ten, and claims once. SQLite:
//! [`SqliteStore`](idem_sqlx::SqliteStore) against plain rusqlite on a file with the same schema, in autocommit,
//! `synchronous = FULL`. Neither side hashes a command or runs a handler.
//!
//! The two sides take turns of a second each. A ratio is the median of the rounds' ratios.

mod fill;
mod pgbench;
mod postgres;
mod sqlite;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use idem_core::store::{Claimed, Claiming, ClosedCall, End, Fenced, Finish, NewCall, NewClaim, Owning, Step};
use idem_core::{
    CallClass, CallState, CommandHash, DownstreamKey, Fence, Keep, OwnerToken, Ownership, Scope, Store, StoredResponse,
    Tenant,
};

use crate::table::median;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What is done over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A claim of a new key.
    Single,
    /// A claim of a new key, and its completion with an answer of 600 bytes.
    Cycle,
    /// A claim, the announcement of a call, and the completion with the call's outcome.
    Payment,
    /// Nine replays of an answer of 600 bytes, and a claim of a new key.
    Replays,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single claim",
            Self::Cycle => "claim and complete",
            Self::Payment => "whole payment",
            Self::Replays => "90 % replays",
        }
    }
}

/// Rates of both sides, round by round.
#[derive(Default)]
struct Rates {
    idem: Vec<f64>,
    limit: Vec<f64>,
}

impl Rates {
    fn row(&self, database: &str, work: Work, callers: usize) -> f64 {
        let ratio = median(self.idem.iter().zip(&self.limit).map(|(idem, limit)| idem / limit).collect());
        let (idem, limit) = (median(self.idem.clone()), median(self.limit.clone()));
        println!("| {database} | {} | {callers} | {idem:.0} | {limit:.0} | {ratio:.2} |", work.name());
        ratio
    }
}

pub(crate) fn run(rounds: usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any machine that can be measured");
    if let Err(error) = runtime.block_on(measure(rounds.max(1))) {
        println!("claims: {error}");
    }
}

async fn measure(rounds: usize) -> Result<(), Failed> {
    println!("| database | work | callers | idem a second | limit a second | ratio |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    let server = postgres::Server::start().await?;
    let mut of_32 = Vec::new();
    for work in [Work::Single, Work::Cycle, Work::Payment, Work::Replays] {
        for callers in CALLERS {
            let ratio = server.compare(work, callers, rounds).await?.row("PostgreSQL", work, callers);
            of_32.extend((callers == 32).then_some(ratio));
        }
    }
    let mut sqlite_32 = f64::NAN;
    for work in [Work::Single, Work::Cycle, Work::Payment, Work::Replays] {
        for callers in CALLERS {
            let ratio = sqlite::compare(work, callers, rounds).await?.row("SQLite", work, callers);
            if callers == 32 && work == Work::Single {
                sqlite_32 = ratio;
            }
        }
    }
    println!();
    fill::measure(&server).await?;
    let &[single, cycle, _payment, replays] = of_32.as_slice() else { return Err("a row is missing".into()) };
    println!("\nratios: single_32={single:.2} cycle_32={cycle:.2} replay90_32={replays:.2} sqlite_32={sqlite_32:.2}");
    Ok(())
}

/// Runs both sides in turns, the first one changing; the first round warms up.
async fn in_turns(
    rounds: usize,
    mut idem: impl AsyncFnMut() -> Result<f64, Failed>,
    mut limit: impl AsyncFnMut() -> Result<f64, Failed>,
) -> Result<Rates, Failed> {
    let mut rates = Rates::default();
    for round in 0..=rounds {
        let (of_idem, of_limit) = if round % 2 == 0 {
            let of_idem = idem().await?;
            (of_idem, limit().await?)
        } else {
            let of_limit = limit().await?;
            (idem().await?, of_limit)
        };
        if round > 0 {
            rates.idem.push(of_idem);
            rates.limit.push(of_limit);
        }
    }
    Ok(rates)
}

/// One turn of idem: that many callers, each with one thing at a time. How often a second.
async fn turn<S: Store + Clone + 'static>(store: &S, work: Work, callers: usize) -> Result<f64, Failed> {
    let keys = Keys::next();
    let start = Instant::now();
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let (store, mut keys) = (store.clone(), keys.of(caller));
            tokio::spawn(async move {
                let mut done = 0;
                while start.elapsed() < TURN {
                    once(&store, work, &mut keys, done).await?;
                    done += 1;
                }
                Ok::<_, Failed>(done)
            })
        })
        .collect();
    let mut done = 0;
    for caller in callers {
        done += caller.await??;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

async fn once(store: &impl Store, work: Work, keys: &mut CallersKeys, turn: u64) -> Result<(), Failed> {
    if work == Work::Replays && !turn.is_multiple_of(10) {
        let claim = new_claim(&format!("replay-{}", fastrand::u64(..REPLAYED)))?;
        return match store.claim(&claim).await? {
            Claimed::Found(_) => Ok(()),
            other => Err(format!("no replay: {other:?}").into()),
        };
    }
    let key = keys.next_key();
    let claim = new_claim(&key)?;
    let Claimed::Inserted { .. } = store.claim(&claim).await? else { return Err("a new key was not new".into()) };
    let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
    let mut closed = Vec::new();
    if work == Work::Payment {
        written(store.step(&owner, &announcement(&key)).await?)?;
        closed.push(ClosedCall { name: CALL.into(), state: CallState::Applied(OUTCOME.into()) });
    }
    if matches!(work, Work::Cycle | Work::Payment) {
        written(store.finish(&owner, &Finish { closed, resource: None, end: completed() }).await?)?;
    }
    Ok(())
}

fn written(fenced: Fenced) -> Result<(), Failed> {
    match fenced {
        Fenced::Written { .. } => Ok(()),
        Fenced::Refused(found) => Err(format!("a write was refused: {found:?}").into()),
    }
}

/// Records that are there to be replayed.
async fn fill_up(store: &(impl Claiming + Owning)) -> Result<(), Failed> {
    for number in 0..REPLAYED {
        let claim = new_claim(&format!("replay-{number}"))?;
        store.claim(&claim).await?;
        let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
        written(store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end: completed() }).await?)?;
    }
    Ok(())
}

fn new_claim(key: &str) -> Result<NewClaim, Failed> {
    Ok(NewClaim {
        scope: Scope::new(Tenant::new(TENANT)?, OPERATION, key.parse()?),
        hash: CommandHash::from_parts(1, 1, [7; 32])?,
        owner: OwnerToken::random(),
        lease: LEASE,
    })
}

fn announcement(key: &str) -> Step {
    let class = CallClass::Dedupes { retention: DAY };
    let key = DownstreamKey::from_stored(format!("{CALL}_{key}"));
    let open = Some(NewCall { name: CALL.into(), class, key });
    Step { closed: Vec::new(), open, resource: None, checkpoint: None, lease: LEASE }
}

/// A window of a day, as by default.
fn completed() -> End {
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; ANSWER]) };
    End::Completed { response, keep: Keep { window: DAY, body: DAY, metadata: 30 * DAY } }
}

/// Keys that no turn has used, each caller's own ascending ones: the same sort for both sides.
#[derive(Clone, Copy)]
struct Keys(i64);

struct CallersKeys(i64);

impl Keys {
    fn next() -> Self {
        static TURN: AtomicI64 = AtomicI64::new(1);
        Self(TURN.fetch_add(1, Ordering::Relaxed) * 1_000 * CALLERS_KEYS)
    }

    fn of(self, caller: usize) -> CallersKeys {
        CallersKeys(self.0 + caller as i64 * CALLERS_KEYS)
    }
}

impl CallersKeys {
    fn next_key(&mut self) -> String {
        self.0 += 1;
        self.0.to_string()
    }
}

const CALLERS: [usize; 3] = [1, 8, 32];
const TURN: Duration = Duration::from_secs(1);
const CALLERS_KEYS: i64 = 1_000_000_000;
const REPLAYED: u64 = 1000;
const TENANT: &str = "tenant-1";
const OPERATION: &str = "create_payment";
const CALL: &str = "charge";
const OUTCOME: &[u8] = br#"{"id":"ch_1234567890","state":"paid"}"#;
const ANSWER: usize = 600;
const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

//! The heartbeat's thread, in real time with short leases.

use std::sync::mpsc;
use std::time::Duration;

use idem_core::events::{Event, MetricsObserver, Observer};
use idem_core::{
    Answer, Begin, CallClass, CallError, Engine, Fate, IdempotentCommand, MemoryStore, Outcome, Reply, Rules, Store,
    Tenant,
};
use idem_sqlx::{PgOptions, PgStore, SqliteStore};
use tokio::runtime::{Builder, Runtime};

use crate::protocol::events::Heard;
use crate::support::faulty::{Fails, FaultyStore, Request};
use idem_cluster::{Cluster, Database};

#[derive(IdempotentCommand)]
#[idem(operation = "slow", version = 1)]
struct Slow {
    id: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "patient", version = 1)]
struct Patient {
    id: u64,
}

fn engine(rules: Rules) -> Engine {
    Engine::builder(MemoryStore::new()).rules(rules).build().unwrap()
}

fn short() -> Rules {
    Rules { lease: Duration::from_millis(200), ..Rules::default() }
}

async fn run(engine: &Engine, work: impl Future<Output = ()>) -> Outcome {
    let tenant = Tenant::new("t").unwrap();
    let key = "k".parse().unwrap();
    engine
        .run(&tenant, &key, &Slow { id: 1 }, |_| async {
            work.await;
            Ok(Reply::status(200))
        })
        .await
        .unwrap()
}

/// A handler that blocks every thread of the runtime for three leases keeps its record.
#[tokio::test(flavor = "current_thread")]
async fn a_blocking_handler_keeps_its_lease() {
    let engine = engine(short());
    let rival = engine.clone();
    // Another runtime, since this one is blocked.
    let rival = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(&rival, async { panic!("a rival ran beside a live owner") }))
    });
    let owner = run(&engine, async { std::thread::sleep(Duration::from_millis(700)) }).await;
    assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    let rival = rival.join().unwrap();
    assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
}

/// The thread sleeps until the first beat of a long lease; a claim with a shorter one wakes it.
#[tokio::test]
async fn a_short_lease_is_renewed_beside_a_long_one() {
    let short = Rules { lease: Duration::from_millis(600), ..Rules::default() };
    let long = Rules { lease: Duration::from_secs(3600), ..Rules::default() };
    let engine = Engine::builder(MemoryStore::new()).rules(short).operation::<Patient>(long).build().unwrap();
    let held = engine.begin(&Tenant::new("t").unwrap(), &"k".parse().unwrap(), &Patient { id: 1 }).await.unwrap();
    assert!(matches!(held, Begin::Run(_)));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let owner = run(&engine, tokio::time::sleep(Duration::from_millis(1300)));
    let rival = async {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        run(&engine, async { panic!("a rival ran beside a live owner") }).await
    };
    let (owner, rival) = tokio::join!(owner, rival);
    assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
}

/// A handler that hangs is given up after `max_run`: its lease runs out, and the next request takes over.
#[tokio::test]
async fn a_hanging_handler_is_given_up() {
    let engine = engine(Rules { max_run: Duration::from_millis(300), ..short() });
    let hung = tokio::spawn({
        let engine = engine.clone();
        async move { run(&engine, std::future::pending()).await }
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    for _ in 0..100 {
        match run(&engine, async {}).await {
            Outcome::Done { .. } => {
                hung.abort();
                return;
            }
            Outcome::Second(Answer::InProgress { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
            other => panic!("{other:?}"),
        }
    }
    panic!("nobody could take over from a handler that hangs");
}

/// It is told of once, and then not renewed any more; work that ends in time is never told of.
#[tokio::test]
async fn the_heartbeat_of_a_hung_handler_ends_with_one_alert() {
    let heard = Heard::default();
    let rules = Rules { max_run: Duration::from_millis(300), ..short() };
    let observers = (heard.clone(), MetricsObserver);
    let engine = Engine::builder(MemoryStore::new()).rules(rules).observer(observers).build().unwrap();
    let in_time = engine.begin(&Tenant::new("t").unwrap(), &"k0".parse().unwrap(), &Slow { id: 0 }).await.unwrap();
    let Begin::Run(in_time) = in_time else { panic!("{in_time:?}") };
    engine.conduct(in_time, |_| async { Ok(Reply::status(200)) }, |_| ()).await;
    assert_eq!(heard.take(), ["claimed First 1", "ended completed"]);

    let (tenant, key) = (Tenant::new("t").unwrap(), "k".parse().unwrap());
    let Begin::Run(hung) = engine.begin(&tenant, &key, &Slow { id: 1 }).await.unwrap() else { panic!("a first claim") };
    let mut events = Vec::new();
    for _ in 0..1000 {
        events.extend(heard.take());
        if events.iter().any(|event| event == "hung slow") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(events, ["claimed First 1", "hung slow"]);
    // Its lease runs out, since nobody renews it; whoever takes over beats anew, and is not told of for the first one.
    for _ in 0..1000 {
        if let Begin::Run(rival) = engine.begin(&tenant, &key, &Slow { id: 1 }).await.unwrap() {
            engine.conduct(rival, |_| async { Ok(Reply::status(200)) }, |_| ()).await;
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut events = heard.take();
    events.retain(|event| event != "answered in_progress");
    assert_eq!(events, ["claimed TakeOver 2", "ended completed"]);
    assert!(matches!(engine.conduct(hung, |_| async { Ok(Reply::status(200)) }, |_| ()).await, Outcome::Second(_)));
}

/// It hangs for longer than `max_run` and waits for the word that somebody else has its record: it gets it once there is
/// somebody, and not before.
#[tokio::test]
async fn work_that_was_given_up_is_told_when_somebody_has_taken_over() {
    let engine = engine(Rules { max_run: Duration::from_millis(300), ..short() });
    let (tenant, key) = (Tenant::new("t").unwrap(), "k".parse().unwrap());
    let Begin::Run(hung) = engine.begin(&tenant, &key, &Slow { id: 1 }).await.unwrap() else { panic!("a first claim") };
    let mut rival = engine.begin(&tenant, &key, &Slow { id: 1 }).await.unwrap();
    while let Begin::Decided(answer) = rival {
        assert!(matches!(answer, Answer::InProgress { .. }), "{answer:?}");
        assert!(!hung.is_lost(), "nobody has it");
        tokio::time::sleep(Duration::from_millis(20)).await;
        rival = engine.begin(&tenant, &key, &Slow { id: 1 }).await.unwrap();
    }
    tokio::time::timeout(Duration::from_secs(20), hung.lost()).await.expect("it is told");
}

/// A beat that panics is one that failed.
#[tokio::test]
async fn a_beat_that_panics_costs_no_claim() {
    let store = FaultyStore::over(MemoryStore::new());
    store.plan(Request::Beat, Fails::Panics);
    let engine = beating(store.clone());
    let owner = run(&engine, tokio::time::sleep(2 * LEASE));
    let rival = async {
        tokio::time::sleep(LEASE + LEASE / 3).await;
        run(&engine, async { panic!("a rival ran beside a live owner") }).await
    };
    let (owner, rival) = tokio::join!(owner, rival);
    assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
    assert_eq!(store.planned(), 0, "no beat panicked");
}

/// Who is told that one handler hangs panics; the thread goes on with the others.
#[tokio::test]
async fn an_observer_that_panics_does_not_end_the_heartbeat() {
    struct Broken;
    impl Observer for Broken {
        fn observe(&self, event: &Event<'_>) {
            assert!(!matches!(event, Event::Hung { .. }), "on purpose");
        }
    }
    let hangs = Rules { max_run: Duration::from_millis(300), ..short() };
    let engine = Engine::builder(MemoryStore::new()).rules(short()).operation::<Patient>(hangs).observer(Broken);
    let engine = engine.build().unwrap();
    let (tenant, key) = (Tenant::new("t").unwrap(), "hangs".parse().unwrap());
    let hung = engine.begin(&tenant, &key, &Patient { id: 1 }).await.unwrap();
    let owner = run(&engine, tokio::time::sleep(Duration::from_millis(1500)));
    let rival = async {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        run(&engine, async { panic!("a rival ran beside a live owner") }).await
    };
    let (owner, rival) = tokio::join!(owner, rival);
    assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
    drop(hung);
}

/// Work that was dropped half-way is not renewed: its lease runs out.
#[tokio::test]
async fn dropped_work_loses_its_lease() {
    let engine = engine(short());
    let dropped = tokio::time::timeout(Duration::from_millis(20), run(&engine, std::future::pending())).await;
    assert!(dropped.is_err());
    for _ in 0..100 {
        if let Outcome::Done { .. } = run(&engine, async {}).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("dropped work kept its record");
}

/// Long enough that a busy machine beats three times within it.
const LEASE: Duration = Duration::from_secs(3);

fn beating(store: impl Store + 'static) -> Engine {
    let rules = Rules { lease: LEASE, ..Rules::default() };
    Engine::builder(store).rules(rules).call::<Slow>("charge", CallClass::Neither).build().unwrap()
}

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

/// Two handlers on two threads of a runtime block both for two leases; `rival` comes when one lease and a half are over.
fn block_every_thread(own: &Runtime, engine: &Engine, rival: impl Future<Output = Outcome>) {
    let (block, blocked) = mpsc::channel();
    let blocking = |id: u64| {
        let (engine, block) = (engine.clone(), block.clone());
        own.spawn(async move {
            let key = format!("k{id}").parse().unwrap();
            let work = |_| async move {
                block.send(()).unwrap();
                std::thread::sleep(2 * LEASE);
                Ok(Reply::status(200))
            };
            engine.run(&Tenant::new("t").unwrap(), &key, &Slow { id }, work).await.unwrap()
        })
    };
    let owners = [blocking(0), blocking(1)];
    blocked.recv().unwrap();
    blocked.recv().unwrap();
    std::thread::sleep(LEASE + LEASE / 2);
    let rival = runtime(1).block_on(rival);
    assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
    for owner in owners {
        let owner = own.block_on(owner).unwrap();
        assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    }
}

async fn come_as_a_rival(engine: Engine) -> Outcome {
    let work = |_| async { panic!("a rival ran beside a live owner") };
    engine.run(&Tenant::new("t").unwrap(), &"k0".parse().unwrap(), &Slow { id: 0 }, work).await.unwrap()
}

#[test]
fn handlers_that_block_every_thread_keep_their_leases_in_memory() {
    let (own, store) = (runtime(2), MemoryStore::new());
    block_every_thread(&own, &beating(store.clone()), come_as_a_rival(beating(store)));
}

#[test]
fn handlers_that_block_every_thread_keep_their_leases_in_sqlite() {
    let (own, directory) = (runtime(2), tempfile::tempdir().unwrap());
    let file = directory.path().join("idem.db");
    let engine = beating(own.block_on(SqliteStore::open(&file)).unwrap());
    let rival = async { come_as_a_rival(beating(SqliteStore::open(&file).await.unwrap())).await };
    block_every_thread(&own, &engine, rival);
}

#[test]
fn handlers_that_block_every_thread_keep_their_leases_in_postgres() {
    let own = runtime(2);
    let database = own.block_on(Cluster::shared().database());
    let engine = beating(own.block_on(PgStore::open(options(&database))).unwrap());
    let rival = async { come_as_a_rival(beating(PgStore::open(options(&database)).await.unwrap())).await };
    block_every_thread(&own, &engine, rival);
}

fn options(database: &Database) -> PgOptions {
    let long = Duration::from_secs(60);
    PgOptions::from(database.options()).statement_timeout(long).acquire_timeout(long)
}

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

impl CallError for Never {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

/// The beat passes a row by that its owner's own transaction holds, for two leases. Nobody else gets it meanwhile, and
/// the owner has not lost it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_locked_by_its_owners_transaction_is_not_lost() {
    let database = Cluster::shared().database().await;
    let store = PgStore::open(options(&database)).await.unwrap();
    let pool = sqlx::PgPool::connect_with(database.options()).await.unwrap();
    let (engine, rival) = (beating(store.clone()), beating(PgStore::open(options(&database)).await.unwrap()));
    let (tenant, key) = (Tenant::new("t").unwrap(), "k0".parse().unwrap());
    let (command, pool) = (Slow { id: 0 }, &pool);
    let owner = engine.run(&tenant, &key, &command, |claim| async move {
        let mut tx = pool.begin().await?;
        let call = claim.open_in(&mut tx, "charge").await?;
        tokio::time::sleep(LEASE + LEASE / 2).await;
        let met = come_as_a_rival(rival).await;
        assert!(matches!(met, Outcome::Second(Answer::InProgress { .. })), "{met:?}");
        tokio::time::sleep(LEASE / 2).await;
        assert!(!claim.is_lost(), "a beat took a locked row for a lost one");
        tx.commit().await?;
        let receipt: u32 = call.run(|_| async { Ok::<_, Never>(7) }).await?;
        Ok(Reply::status(201).body(receipt.to_string()))
    });
    let owner = owner.await.unwrap();
    assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
    drop(store);
}

/// The first beat finds no database, the second one does: the lease never ran out.
#[tokio::test]
async fn a_database_away_for_half_a_lease_costs_no_claim() {
    for fails in [Fails::Before, Fails::After] {
        let store = FaultyStore::over(MemoryStore::new());
        store.plan(Request::Beat, fails);
        let engine = beating(store.clone());
        let owner = run(&engine, tokio::time::sleep(2 * LEASE));
        let rival = async {
            tokio::time::sleep(LEASE + LEASE / 3).await;
            run(&engine, async { panic!("a rival ran beside a live owner") }).await
        };
        let (owner, rival) = tokio::join!(owner, rival);
        assert!(matches!(owner, Outcome::Done { .. }), "{owner:?}");
        assert!(matches!(rival, Outcome::Second(Answer::InProgress { .. })), "{rival:?}");
        assert_eq!(store.planned(), 0, "no beat failed");
    }
}

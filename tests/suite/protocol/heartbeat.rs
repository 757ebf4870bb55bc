//! The heartbeat's thread, in real time with short leases.

use std::time::Duration;

use idem_core::{Answer, Begin, Engine, IdempotentCommand, MemoryStore, Outcome, Reply, Rules, Tenant};

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

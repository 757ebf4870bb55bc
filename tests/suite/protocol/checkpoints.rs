//! What a later attempt makes of the checkpoint of an earlier one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem_core::operator::Resolution;
use idem_core::{
    Answer, Claim, Engine, Failure, IdempotentCommand, MemoryStore, Outcome, Record, Reply, Scope, StatusName, Tenant,
};

use crate::support::clock::TokioClock;

#[derive(IdempotentCommand)]
#[idem(operation = "ship", version = 1)]
struct Ship {
    order: u64,
}

struct Bench {
    memory: MemoryStore,
    engine: Engine,
    /// How often the work came past its checkpoint.
    shipped: AtomicUsize,
    began: AtomicUsize,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let memory = MemoryStore::with_clock(clock.clone());
        let engine = Engine::builder(memory.clone()).clock(clock).build().unwrap();
        Self { memory, engine, shipped: AtomicUsize::new(0), began: AtomicUsize::new(0) }
    }

    async fn run<W, F>(&self, work: W) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        let (tenant, key) = (Tenant::new("acme").unwrap(), "k".parse().unwrap());
        self.engine.run(&tenant, &key, &Ship { order: 1 }, work).await.unwrap()
    }

    /// An attempt that kept this and failed.
    async fn left(name: &str, version: u32, data: &str) -> Self {
        let bench = Self::new();
        let failed = bench
            .run(|claim| async move {
                claim.checkpoint(name, version, &data).await?;
                Err(Failure::from("the carrier is closed"))
            })
            .await;
        assert!(matches!(failed, Outcome::Failed { .. }), "{failed:?}");
        bench
    }

    /// A client that comes back, to a build that reads a text kept as `reserved` version 2.
    async fn comes_back(&self) -> Outcome {
        tokio::time::sleep(Duration::from_secs(120)).await;
        self.run(|claim| async move {
            self.began.fetch_add(1, Ordering::Relaxed);
            let reserved: Option<String> = claim.resume_from("reserved", 2)?;
            self.shipped.fetch_add(1, Ordering::Relaxed);
            Ok(Reply::status(201).body(reserved.unwrap_or_default()))
        })
        .await
    }

    fn record(&self) -> Record {
        let scope = Scope::new(Tenant::new("acme").unwrap(), "ship", "k".parse().unwrap());
        self.memory.record(&scope).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_goes_on_from_the_checkpoint() {
    let bench = Bench::left("reserved", 2, "r-1").await;
    let Outcome::Done { reply, .. } = bench.comes_back().await else { panic!("{:?}", bench.record()) };
    assert_eq!(reply.body, b"r-1");
    assert!(matches!(Bench::new().comes_back().await, Outcome::Done { .. }), "none was kept");
}

/// Another name, another version, and data that is something else: nobody knows how far the work came, and no retry
/// of any number finds out.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_cannot_be_read_is_unknown_and_no_crash_loop() {
    for (name, version) in [("packed", 2), ("reserved", 1), ("reserved", 3)] {
        let bench = Bench::left(name, version, "r-1").await;
        stays_unknown(&bench).await;
    }
    let bench = Bench::new();
    bench
        .run(|claim| async move {
            claim.checkpoint("reserved", 2, &["not", "a", "text"]).await?;
            Err(Failure::from("the carrier is closed"))
        })
        .await;
    stays_unknown(&bench).await;
}

async fn stays_unknown(bench: &Bench) {
    let first = bench.comes_back().await;
    assert!(matches!(first, Outcome::Unknown { .. }), "{first:?}");
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bench.engine.recover_once(10).await.unwrap();
        let next = bench.comes_back().await;
        assert!(matches!(next, Outcome::Second(Answer::Unresolved { .. })), "{next:?}");
    }
    assert_eq!((bench.began.load(Ordering::Relaxed), bench.shipped.load(Ordering::Relaxed)), (1, 0));
    assert!(bench.record().is_parked());
    // What cannot be read is still there for the person who looks.
    let scope = bench.record().scope;
    assert!(bench.engine.inspect(&scope).await.unwrap().unwrap().record.checkpoint.is_some());
    let verdict = Resolution::completed(Reply::status(201));
    bench.engine.resolve(&scope, &verdict, "ada", "the carrier has it").await.unwrap();
    assert_eq!(bench.record().status.name(), StatusName::Completed);
}

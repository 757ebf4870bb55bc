//! Work that takes longer than its lease, on every store: the heartbeat keeps it, and nobody else runs it or sweeps it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idem_core::retention::Sweep;
use idem_core::store::{Store, Swept};
use idem_core::{Answer, Engine, IdempotentCommand, Outcome, Reply, Rules, Tenant};
use tokio::sync::Notify;

#[derive(IdempotentCommand)]
#[idem(operation = "settle_batch", version = 1)]
struct SettleBatch {
    number: u64,
}

/// Makes the `#[tokio::test]` of a store; `$ages` makes every record look as old as can be to its sweeper.
macro_rules! lasting {
    ($fresh:expr, $ages:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn work_outlives_its_lease_and_its_window() {
            let (store, lives_as_long) = $fresh.await;
            crate::stores::lasting::work_outlives_its_lease_and_its_window(store, $ages(&lives_as_long)).await;
        }
    };
}
pub(super) use lasting;

/// Windows that are over at once, two sweepers, a client that asks again and again, and four leases of work: in
/// progress until it is done, nothing swept, one effect.
pub(super) async fn work_outlives_its_lease_and_its_window(
    store: impl Store + 'static,
    ages: impl Future<Output = ()>,
) {
    let moment = Duration::from_millis(1);
    let lease = Duration::from_millis(800);
    let rules = Rules {
        lease,
        window: moment,
        body_retention: moment,
        metadata_retention: Duration::ZERO,
        grace: Duration::from_nanos(1),
        ..Rules::default()
    };
    let engine = Engine::builder(store).rules(rules).build().unwrap();
    let effects = Arc::new(AtomicUsize::new(0));
    let may_end = Arc::new(Notify::new());
    let running = tokio::spawn(settle(engine.clone(), Arc::clone(&effects), Some(Arc::clone(&may_end))));
    while effects.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(moment).await;
    }
    ages.await;
    let done = Arc::new(AtomicBool::new(false));
    let sweepers: Vec<_> = (0..2)
        .map(|_| {
            let (engine, done) = (engine.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let sweep = Sweep { purge_tombstones: true, ..Sweep::default() };
                    assert_eq!(engine.sweep(&sweep).await.unwrap(), Swept::default());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
        })
        .collect();
    let began = Instant::now();
    while began.elapsed() < lease * 4 {
        let second = settle(engine.clone(), Arc::clone(&effects), None).await;
        assert!(matches!(second, Outcome::Second(Answer::InProgress { .. })), "{second:?}");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    // What the sweepers meet once the work has ended is theirs.
    done.store(true, Ordering::SeqCst);
    for sweeper in sweepers {
        sweeper.await.unwrap();
    }
    may_end.notify_one();
    assert!(matches!(running.await.unwrap(), Outcome::Done { .. }));
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

async fn settle(engine: Engine, effects: Arc<AtomicUsize>, may_end: Option<Arc<Notify>>) -> Outcome {
    let (tenant, key) = (Tenant::new("tenant-1").unwrap(), "batch-7".parse().unwrap());
    let work = move |_| async move {
        effects.fetch_add(1, Ordering::SeqCst);
        if let Some(may_end) = may_end {
            may_end.notified().await;
        }
        Ok(Reply::status(201))
    };
    engine.run(&tenant, &key, &SettleBatch { number: 7 }, work).await.unwrap()
}

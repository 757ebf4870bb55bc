//! Work in the application's own transaction: business rows and record together, or neither. Every store whose database
//! also holds the application's rows keeps these promises; one joins by saying what its rows are, [`Rows`].

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use idem_core::store::{Answered, Claiming, Fenced, Finish, Joins, Seen, Step, TakeOver, TxStore};
use idem_core::{
    Answer, CallClass, CallError, CallState, Claim, Engine, Failure, Fate, IdempotencyKey, IdempotentCommand,
    NotCalled, NotCheckpointed, NotCommitted, Outcome, OwnerToken, Ownership, Record, Reply, Rules, Scope, StatusName,
    StoreError, Tenant,
};

use crate::support::faulty::FaultyStore;

/// A store and the application's rows beside its records.
pub(super) trait Rows {
    type Store: TxStore + Clone + 'static;

    /// A fresh database.
    async fn fresh() -> Self;

    fn store(&self) -> &Self::Store;

    /// A transaction of the application's own, as it would begin one.
    async fn begin(&self) -> Tx<Self>;

    /// One row more in it.
    async fn insert(&self, tx: &mut Tx<Self>, row: &'static str) -> Result<(), Failure>;

    /// Sees to it that its commit fails. False where no commit can.
    async fn doom(tx: &mut Tx<Self>) -> bool;

    /// The rows that are committed.
    async fn rows(&self) -> Vec<String>;
}

pub(super) type Tx<R> = <<R as Rows>::Store as TxStore>::Tx;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

/// Makes one `#[tokio::test]` of each promise.
macro_rules! joining {
    ($rows:ty: $($promise:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                crate::stores::joining::$promise::<$rows>().await;
            }
        )+
    };
    ($rows:ty) => {
        crate::stores::joining::joining! { $rows:
            rows_and_answer_are_committed_together
            a_claim_commits_by_itself
            a_refusal_takes_rows_back_and_is_remembered
            a_failure_takes_rows_back_and_may_be_tried_again
            a_panic_takes_rows_back
            an_answer_that_is_not_final_takes_rows_back
            a_lost_claim_takes_rows_back
            a_commit_that_failed_is_no_success
            a_commit_whose_answer_was_lost_is_found_out
            a_commit_that_never_arrived_is_found_out
            a_committed_answer_is_the_answer
            outcomes_ride_on_the_commit
            a_lost_claim_leaves_the_transaction_usable
            an_announcement_is_committed_with_the_rows
            a_call_waits_for_its_commit
            an_announcement_that_is_taken_back_was_never_made
            a_checkpoint_is_committed_with_the_rows
            a_checkpoint_of_its_own_is_read_back
            a_transaction_of_another_database_is_refused
            a_store_behind_another_is_found
            work_that_is_dropped_leaves_nothing
        }
    };
}
pub(super) use joining;

pub(super) async fn rows_and_answer_are_committed_together<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let first = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    let Outcome::Done { reply, .. } = first.await else { panic!("it is done") };
    assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
    assert_eq!(bench.record().await.status.name(), StatusName::Completed);
    let second = bench.run_tx(5, async |_| panic!("it ran twice")).await;
    assert!(matches!(second, Outcome::Second(Answer::Replay { response, .. }) if response.status == 201));
}

pub(super) async fn a_claim_commits_by_itself<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let first = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        Ok(claim.commit(tx, paid()).await?.into())
    });
    let Outcome::Done { reply, .. } = first.await else { panic!("it is done") };
    assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
    let record = bench.record().await;
    // The claim and the commit, and nothing after it.
    assert_eq!((record.status.name(), record.revision.get()), (StatusName::Completed, 2));
}

pub(super) async fn a_refusal_takes_rows_back_and_is_remembered<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let refused = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Err(Failure::reply(Reply::status(409).body("no funds")))
    });
    assert!(matches!(refused.await, Outcome::Done { reply, .. } if reply.status == 409));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::FailedReplayable);
    let second = bench.run_tx(5, async |_| panic!("it ran twice")).await;
    assert!(matches!(second, Outcome::Second(Answer::Replay { response, .. }) if response.status == 409));
}

pub(super) async fn a_failure_takes_rows_back_and_may_be_tried_again<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Err("no".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    // The key still means what it meant.
    assert!(matches!(bench.run_tx(6, async |_| panic!("it ran")).await, Outcome::Second(Answer::Mismatch(_))));
    bench.retry_is_due().await;
    let again = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    assert!(matches!(again.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["paid"]);
}

pub(super) async fn a_panic_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let panicked = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        panic!("on purpose")
    });
    assert!(matches!(panicked.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

pub(super) async fn an_answer_that_is_not_final_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let busy = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, Reply::status(503)))
    });
    assert!(matches!(busy.await, Outcome::Failed { reply: Some(reply), .. } if reply.status == 503));
    bench.retry_is_due().await;
    let busy = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        match claim.commit(tx, Reply::status(503)).await {
            Err(error @ NotCommitted::NotFinal { status: 503 }) => Err(error.into()),
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(busy.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
}

pub(super) async fn a_lost_claim_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let lost = bench.run(5, async |claim| {
        bench.is_taken_over().await;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        match claim.commit(tx, paid()).await {
            Err(error @ NotCommitted::Lost) => Err(error.into()),
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(lost.await, Outcome::Second(Answer::InProgress { .. })));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::InProgress);
}

/// Also where the work takes no notice of it.
pub(super) async fn a_commit_that_failed_is_no_success<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let mut doomed = true;
    let failed = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        doomed = R::doom(&mut tx).await;
        Ok((tx, paid()))
    });
    let failed = failed.await;
    if !doomed {
        return;
    }
    assert!(matches!(failed, Outcome::Failed { reply: None, .. }), "{failed:?}");
    assert_eq!((bench.rows.rows().await, bench.record().await.status.name()), (vec![], StatusName::FailedRetryable));

    bench.retry_is_due().await;
    let ignored = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        R::doom(&mut tx).await;
        assert!(matches!(claim.commit(tx, paid()).await, Err(NotCommitted::Unknown(_))));
        Ok(paid())
    });
    assert!(matches!(ignored.await, Outcome::Failed { reply: None, .. }));
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

pub(super) async fn a_commit_whose_answer_was_lost_is_found_out<R: Rows>() {
    for ignored in [false, true] {
        let bench = Bench::<R>::new().await;
        let done = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let committed = claim.commit(Lossy { tx, arrives: true }, paid()).await;
            let Err(error @ NotCommitted::Unknown(_)) = committed else { panic!("{committed:?}") };
            if ignored { Ok(Reply::status(200)) } else { Err(error.into()) }
        });
        let Outcome::Done { reply, .. } = done.await else { panic!("it is done") };
        assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
        assert_eq!(bench.record().await.status.name(), StatusName::Completed);
    }
}

pub(super) async fn a_commit_that_never_arrived_is_found_out<R: Rows>() {
    for ignored in [false, true] {
        let bench = Bench::<R>::new().await;
        let failed = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let committed = claim.commit(Lossy { tx, arrives: false }, paid()).await;
            let Err(error @ NotCommitted::Unknown(_)) = committed else { panic!("{committed:?}") };
            if ignored { Ok(paid()) } else { Err(error.into()) }
        });
        assert!(matches!(failed.await, Outcome::Failed { reply: None, .. }));
        assert_eq!(bench.rows.rows().await, [""; 0]);
        assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
    }
}

/// Whatever the work does after its commit: what was stored is what every client gets.
pub(super) async fn a_committed_answer_is_the_answer<R: Rows>() {
    for turn in 0..3 {
        let bench = Bench::<R>::new().await;
        let done = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let _committed = claim.commit(tx, paid()).await?;
            match turn {
                0 => Err("after the commit".into()),
                1 => Ok(Reply::status(500)),
                _ => panic!("on purpose"),
            }
        });
        assert!(matches!(done.await, Outcome::Done { reply, .. } if reply == paid()), "{turn}");
    }
}

pub(super) async fn outcomes_ride_on_the_commit<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let done = bench.run(5, async |claim| {
        let receipt: u32 = claim.call("charge", |_| async { Ok::<_, Broken>(7) }).await?;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        claim.makes("payment", "pay_1").await;
        Ok(claim.commit(tx, paid().body(receipt.to_string())).await?.into())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    let record = bench.record().await;
    assert_eq!(record.calls[0].state, CallState::Applied(b"7".to_vec()));
    assert_eq!(record.resource.map(|resource| resource.id), Some("pay_1".to_owned()));
}

pub(super) async fn a_lost_claim_leaves_the_transaction_usable<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let lost = bench.run(5, async |claim| {
        bench.is_taken_over().await;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "before").await?;
        assert!(matches!(claim.open_in(&mut tx, "charge").await, Err(NotCalled::Lost(_))));
        assert!(matches!(claim.checkpoint_in(&mut tx, "half", 1, &1).await, Err(NotCheckpointed::Lost)));
        bench.rows.insert(&mut tx, "after").await?;
        Joins::commit(tx).await?;
        Ok(paid())
    });
    assert!(matches!(lost.await, Outcome::Second(Answer::InProgress { .. })));
    assert_eq!(bench.rows.rows().await, ["after", "before"]);
    let record = bench.record().await;
    assert_eq!((record.calls, record.checkpoint), (Vec::new(), None));
}

pub(super) async fn an_announcement_is_committed_with_the_rows<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let done = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "pending").await?;
        let charge = claim.open_in(&mut tx, "charge").await?;
        assert_eq!(bench.record().await.calls, []);
        Joins::commit(tx).await?;
        assert!(bench.record().await.has_open_call());
        let receipt: u32 = charge.run(|_| async { Ok::<_, Broken>(7) }).await?;
        Ok(paid().body(receipt.to_string()))
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    assert_eq!((bench.rows.rows().await, bench.record().await.has_open_call()), (vec!["pending".to_owned()], false));
}

/// What is announced in a transaction that nobody has committed is announced to nobody.
pub(super) async fn a_call_waits_for_its_commit<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let asked = AtomicUsize::new(0);
    let failed = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        let charge = claim.open_in(&mut tx, "charge").await?;
        let made: Result<u32, _> = charge
            .run(|_| async {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Broken>(7)
            })
            .await;
        let failure = made.expect_err("it is not announced");
        let why = failure.source().and_then(|error| error.downcast_ref::<NotCalled>()).map(NotCalled::code);
        assert_eq!(why, Some("CALL_NOT_COMMITTED"));
        drop(tx);
        Err(failure)
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!((asked.into_inner(), bench.record().await.calls), (0, vec![]));
}

/// A refusal after a rolled back announcement leaves nothing for recovery to find out.
pub(super) async fn an_announcement_that_is_taken_back_was_never_made<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let refused = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "pending").await?;
        let _text = claim.open_in(&mut tx, "text").await?;
        drop(tx);
        Err(Failure::reply(Reply::status(402)))
    });
    assert!(matches!(refused.await, Outcome::Done { reply, .. } if reply.status == 402));
    let record = bench.record().await;
    assert_eq!((record.status.name(), record.calls), (StatusName::FailedReplayable, vec![]));

    // Committed, it is there, and the end takes notice of it.
    let bench = Bench::<R>::new().await;
    let unknown = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        let _text = claim.open_in(&mut tx, "text").await?;
        Joins::commit(tx).await?;
        Err(Failure::reply(Reply::status(402)))
    });
    assert!(matches!(unknown.await, Outcome::Unknown { .. }));
    assert!(bench.record().await.has_open_call());
}

pub(super) async fn a_checkpoint_is_committed_with_the_rows<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run(5, async |claim| {
        assert_eq!(claim.last_checkpoint(), None);
        let mut tx = bench.rows.begin().await;
        claim.checkpoint_in(&mut tx, "taken back", 1, &1).await?;
        drop(tx);
        assert_eq!(bench.record().await.checkpoint, None);
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "reserved").await?;
        claim.checkpoint_in(&mut tx, "reserved", 2, &"seat 7").await?;
        Joins::commit(tx).await?;
        Err("and then it broke".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    bench.retry_is_due().await;
    let done = bench.run(5, async |claim| {
        let checkpoint = claim.last_checkpoint().expect("the first attempt left one");
        assert_eq!((checkpoint.name.as_str(), checkpoint.version), ("reserved", 2));
        assert_eq!(checkpoint.data_as::<String>()?, "seat 7");
        Ok(paid())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["reserved"]);
}

pub(super) async fn a_checkpoint_of_its_own_is_read_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run(5, async |claim| {
        claim.checkpoint("half", 1, &[1, 2]).await?;
        assert_eq!(bench.record().await.checkpoint.map(|checkpoint| checkpoint.data), Some(b"[1,2]".to_vec()));
        Err("and then it broke".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    bench.retry_is_due().await;
    let done = bench.run(5, async |claim| {
        assert_eq!(claim.last_checkpoint().expect("one").data_as::<Vec<u32>>()?, [1, 2]);
        Ok(paid())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
}

pub(super) async fn a_transaction_of_another_database_is_refused<R: Rows>() {
    let [bench, other] = [Bench::<R>::new().await, Bench::<R>::new().await];
    let failed = bench.run(5, async |claim| {
        let mut tx = other.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        let Err(NotCalled::NotAnnounced { source, .. }) = claim.open_in(&mut tx, "charge").await else {
            panic!("it was announced elsewhere")
        };
        assert_eq!(other_store(&source), Some("TRANSACTION_OF_ANOTHER_STORE"));
        match claim.commit(tx, paid()).await {
            Err(NotCommitted::NotWritten(source)) => {
                assert_eq!(other_store(&source), Some("TRANSACTION_OF_ANOTHER_STORE"));
                Err(source.into())
            }
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!((bench.rows.rows().await, other.rows.rows().await), (vec![], vec![]));
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

/// A cache in front, say; and an engine on another kind of store is told so before anything runs.
pub(super) async fn a_store_behind_another_is_found<R: Rows>() {
    let rows = &R::fresh().await;
    let front = FaultyStore::over(FaultyStore::over(rows.store().clone()));
    let engine = Engine::builder(front).build().unwrap();
    let done = engine
        .run_tx(rows.store(), &tenant(), &key(), &Pay { cents: 5 }, |mut tx, _| async move {
            rows.insert(&mut tx, "paid").await?;
            Ok((tx, paid()))
        })
        .await;
    assert!(matches!(done, Ok(Outcome::Done { .. })));
    assert_eq!(rows.rows().await, ["paid"]);

    let elsewhere = Engine::builder(FaultyStore::opaque(idem_core::MemoryStore::new())).build().unwrap();
    let refused = elsewhere
        .run_tx(rows.store(), &tenant(), &"key-2".parse().unwrap(), &Pay { cents: 5 }, |_, _| async {
            panic!("it ran")
        })
        .await;
    assert_eq!(other_store(&refused.unwrap_err()), Some("TRANSACTION_OF_ANOTHER_STORE"));
}

/// Whoever drops the work half-way leaves no row, no lock and no answer; the key is free after its lease.
pub(super) async fn work_that_is_dropped_leaves_nothing<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let hanging = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        std::future::pending::<()>().await;
        Ok((tx, paid()))
    });
    assert!(tokio::time::timeout(Duration::from_millis(300), hanging).await.is_err());
    assert_eq!(bench.rows.rows().await, [""; 0]);
    let again = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    assert!(matches!(again.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["paid"]);
}

/// An engine on fresh rows.
struct Bench<R: Rows> {
    rows: R,
    engine: Engine,
}

impl<R: Rows> Bench<R> {
    async fn new() -> Self {
        Self::of(Rules { backoff: Duration::from_millis(1), ..Rules::default() }).await
    }

    async fn of(rules: Rules) -> Self {
        let rows = R::fresh().await;
        let engine = Engine::builder(rows.store().clone())
            .rules(rules)
            .call::<Pay>("charge", CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) })
            .call::<Pay>("text", CallClass::Neither)
            .build()
            .unwrap();
        Self { rows, engine }
    }

    async fn run(&self, cents: u64, work: impl AsyncFnOnce(Claim) -> Result<Reply, Failure>) -> Outcome {
        let panicked = Mutex::default();
        let work = |claim| watched(&panicked, async move { work(claim).await });
        let outcome = self.engine.run(&tenant(), &key(), &Pay { cents }, work).await;
        told(panicked);
        outcome.unwrap()
    }

    async fn run_tx(&self, cents: u64, work: impl AsyncFnOnce(Tx<R>) -> Result<(Tx<R>, Reply), Failure>) -> Outcome {
        let panicked = Mutex::default();
        let work = |tx, _| watched(&panicked, async move { work(tx).await });
        let outcome = self.engine.run_tx(self.rows.store(), &tenant(), &key(), &Pay { cents }, work).await;
        told(panicked);
        outcome.unwrap()
    }

    async fn record(&self) -> Record {
        self.rows.store().look(&Scope::new(tenant(), "pay", key())).await.unwrap().unwrap().record
    }

    /// A rival takes the record over, as soon as its lease is over.
    async fn is_taken_over(&self) {
        loop {
            let take = TakeOver {
                seen: Seen::of(&self.record().await),
                owner: OwnerToken::random(),
                lease: Duration::from_secs(60),
            };
            if let idem_core::store::Guarded::Written { .. } = self.rows.store().take_over(&take).await.unwrap() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn retry_is_due(&self) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

type Panicked = Mutex<Option<Box<dyn Any + Send>>>;

/// The engine takes a panic of the work for a failure; one of an assertion in it is the test's.
async fn watched<T>(panicked: &Panicked, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(ended) => ended,
        Err(panic) if panic.downcast_ref() == Some(&"on purpose") => resume_unwind(panic),
        Err(panic) => {
            *panicked.lock().unwrap() = Some(panic);
            Err("an assertion failed".into())
        }
    }
}

fn told(panicked: Panicked) {
    if let Some(panic) = panicked.into_inner().unwrap() {
        resume_unwind(panic);
    }
}

/// A transaction whose commit tells nobody whether it arrived.
struct Lossy<T> {
    tx: T,
    arrives: bool,
}

#[async_trait]
impl<S: Sync, T: Joins<S>> Joins<S> for Lossy<T> {
    async fn step(&mut self, store: &S, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        self.tx.step(store, owner, step).await
    }

    async fn finish(&mut self, store: &S, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        self.tx.finish(store, owner, finish).await
    }

    async fn answer(&mut self, store: &S, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        self.tx.answer(store, owner, answered).await
    }

    async fn commit(self) -> Result<(), StoreError> {
        if self.arrives {
            self.tx.commit().await?;
        }
        Err(StoreError::Unavailable("the connection was reset".into()))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("broken")]
struct Broken;

impl CallError for Broken {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

/// The code of the [`idem_core::store::OtherStore`] behind a store's error.
fn other_store(error: &StoreError) -> Option<&'static str> {
    error.source()?.downcast_ref::<idem_core::store::OtherStore>().map(idem_core::store::OtherStore::code)
}

/// A lease that is over soon, and that no heartbeat renews.
fn short() -> Rules {
    Rules { lease: Duration::from_millis(30), max_run: Duration::from_nanos(1), ..Rules::default() }
}

fn paid() -> Reply {
    Reply::status(201).header("content-type", "text/plain").body("paid")
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

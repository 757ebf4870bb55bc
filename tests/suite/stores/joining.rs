//! Work in the application's own transaction: business rows and record together, or neither. Every store whose database
//! also holds the application's rows keeps these promises; one joins by saying what its rows are, [`Rows`].

mod announcing;
mod ending;
mod settling;

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

pub(super) use announcing::*;
pub(super) use ending::*;
pub(super) use settling::*;

/// A store and the application's rows beside its records.
pub(super) trait Rows: Send + Sync + Sized + 'static {
    type Store: TxStore + Clone + 'static;

    /// A fresh database.
    async fn fresh() -> Self;

    fn store(&self) -> &Self::Store;

    /// A transaction of the application's own, as it would begin one.
    async fn begin(&self) -> Tx<Self>;

    /// One row more in it.
    fn insert(&self, tx: &mut Tx<Self>, row: &'static str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sees to it that its commit fails. False where no commit can.
    fn doom(tx: &mut Tx<Self>) -> impl Future<Output = bool> + Send;

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
            a_commit_whose_fate_cannot_be_read_is_not_told_as_a_success
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
            settled_rows_and_record_are_committed_together
            a_worker_that_was_overtaken_takes_its_rows_back
            a_settlement_whose_commit_failed_is_asked_about_again
            an_answer_that_is_written_anew_is_stored_by_nobody
        }
    };
}
pub(super) use joining;

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

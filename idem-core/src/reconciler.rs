//! Asking a provider what became of a call whose answer nobody saw.

use std::error::Error;

use async_trait::async_trait;
use serde::Serialize;

use crate::calls::{CallRecord, CallState};
use crate::decide::{Becomes, Ended, Finding, becomes};
use crate::record::{Ownership, Record, ResourceRef};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::store::{Answered, AnsweredEnd, ClosedCall, End, Fenced, StoreError, TxStore};

/// Knows how to ask about one call of one operation, and what its answer means for the application's own rows.
///
/// `Tx` is the transaction of the store that the engine runs on, so that business rows, outbox and record settle
/// together or not at all. It runs in a worker, after the process of the handler may be long gone: all it has is the
/// record. It runs no handler.
#[async_trait]
pub trait Reconciler<Tx: Send>: Send + Sync {
    /// Asks the provider by [`CallRecord::key`]. It must compare what the provider has (amount, the command hash in its
    /// metadata) with what the record says: a charge of another amount under our key is no answer.
    ///
    /// Runs outside of any transaction, and may be asked again at any time.
    ///
    /// # Errors
    /// [`Transient`] where the provider could not be asked: the same as [`Finding::StillUnknown`].
    async fn find(&self, record: &Record, call: &CallRecord) -> Result<Finding, Transient>;

    /// Writes what the answer means into the application's own rows, inside the transaction in which the record is
    /// settled. It has half of [`Rules::ask_lease`], and two seconds where a request waits; then it is dropped, and rolled
    /// back with its transaction. `call` is closed now, [`CallState::Applied`] or [`CallState::Rejected`]; [`CallRecord::outcome`] reads it.
    ///
    /// # Errors
    /// Any; then nothing is written, and the record is asked about again.
    async fn settle(
        &self,
        tx: &mut Tx,
        record: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn Error + Send + Sync>>;
}

/// What a closed call makes of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// The command is done: this is its answer, kept for the client that never came back or still may.
    Reply(Reply),
    /// The same, with what the command made: for a record that does not say so yet, and whose later requests get no stored
    /// answer but the resource as it is then ([`Replay::Rebuilt`](crate::Replay::Rebuilt)).
    Made(Reply, ResourceRef),
    /// More is to be done than a worker knows: the next attempt of a client goes on, and gets this call's outcome
    /// without making it.
    Resume,
}

/// The provider could not be asked right now.
#[derive(Debug, thiserror::Error)]
#[error("the provider could not be asked")]
pub struct Transient(#[source] pub Box<dyn Error + Send + Sync>);

impl Transient {
    /// Keeps the cause for the log.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

impl Finding {
    /// The call happened, and this is the outcome that the work would have stored.
    ///
    /// # Errors
    /// Where the outcome has no JSON.
    pub fn applied<T: Serialize>(outcome: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::Applied(serde_json::to_vec(outcome)?))
    }

    /// The call was refused for good, and this is the answer that the work would have given. It is kept with the headers that
    /// any answer is kept with.
    #[must_use]
    pub fn rejected(reply: &Reply) -> Self {
        Self::Rejected(reply.to_stored_bytes())
    }
}

impl CallRecord {
    /// The stored outcome of a call that happened; `None` for any other call.
    ///
    /// # Errors
    /// Where it is no `T`.
    pub fn outcome<T: serde::de::DeserializeOwned>(&self) -> Option<Result<T, serde_json::Error>> {
        match &self.state {
            CallState::Applied(outcome) => Some(serde_json::from_slice(outcome)),
            CallState::Open | CallState::Rejected(_) | CallState::Withdrawn => None,
        }
    }

    /// The stored answer of a call that was refused for good; `None` for any other call.
    #[must_use]
    pub fn refusal(&self) -> Option<Reply> {
        self.state.refusal()
    }
}

impl CallState {
    /// The stored answer of a call that was refused for good; `None` in any other state.
    #[must_use]
    pub fn refusal(&self) -> Option<Reply> {
        match self {
            Self::Rejected(stored) => Reply::from_stored_bytes(stored),
            Self::Open | Self::Applied(_) | Self::Withdrawn => None,
        }
    }

    /// The same state, of an answer with those headers only that any answer is kept with.
    pub(crate) fn kept(self, headers: &[String]) -> Self {
        match self.refusal() {
            Some(reply) => Self::Rejected(reply.to_kept_bytes(headers)),
            None => self,
        }
    }
}

/// A [`Reconciler`] together with the store whose transactions it writes in; the engine knows no transaction's type.
#[async_trait]
pub(crate) trait Settles: Send + Sync {
    async fn find(&self, record: &Record, call: &CallRecord) -> Result<Finding, Transient>;

    /// T11, T11r: business rows and record in one fenced transaction.
    async fn settle(&self, settling: Settling<'_>) -> Result<Fenced, NotSettled>;
}

/// What is settled: `record`'s `call` is closed, as `closed` says.
pub(crate) struct Settling<'a> {
    pub(crate) owner: &'a Ownership,
    pub(crate) record: &'a Record,
    pub(crate) call: &'a CallRecord,
    pub(crate) closed: Vec<ClosedCall>,
    pub(crate) rules: &'a Rules,
    pub(crate) kept_headers: &'a [String],
}

/// Why a call that is known was not settled; it is asked about again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSettled {
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the application's reconciler failed")]
    Reconciler(#[source] Box<dyn Error + Send + Sync>),
}

/// See [`Settles`].
pub(crate) struct Bound<S, R> {
    pub(crate) store: S,
    pub(crate) reconciler: R,
}

#[async_trait]
impl<S: TxStore, R: Reconciler<S::Tx>> Settles for Bound<S, R> {
    async fn find(&self, record: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        self.reconciler.find(record, call).await
    }

    async fn settle(&self, settling: Settling<'_>) -> Result<Fenced, NotSettled> {
        let Settling { owner, record, call, closed, rules, kept_headers } = settling;
        let mut tx = self.store.begin().await?;
        let settled = self.reconciler.settle(&mut tx, record, call).await.map_err(NotSettled::Reconciler)?;
        let (reply, resource) = match settled {
            Settled::Resume => (None, None),
            Settled::Reply(reply) => (Some(reply), None),
            Settled::Made(reply, resource) => (Some(reply), Some(resource)),
        };
        let end = match reply {
            None => End::FailedRetryable { retry_in: std::time::Duration::ZERO, keep: rules.keep() },
            Some(reply) => {
                // No call is open here, so only the status speaks. What could be tried again is not an end: a worker
                // that knows no better leaves it to the next attempt.
                let becomes = becomes(Ended::Replied(reply.status), &[], record.created_at, rules);
                let response = reply.kept(becomes, rules, kept_headers);
                match becomes {
                    Becomes::Completed => End::Completed { response, keep: rules.keep() },
                    Becomes::FailedReplayable => End::FailedReplayable { response, keep: rules.keep() },
                    Becomes::FailedRetryable | Becomes::Unknown => {
                        End::FailedRetryable { retry_in: rules.backoff, keep: rules.keep() }
                    }
                }
            }
        };
        let answered = Answered { closed, resource, end: AnsweredEnd::Ended(end) };
        // A refused write has dropped the transaction, business rows and all.
        Ok(self.store.answer_in(tx, owner, &answered).await?)
    }
}

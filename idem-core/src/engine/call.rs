//! One announced call, as the work holds it.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::calls::{CallRecord, CallState, DownstreamKey};
use crate::engine::claim::Claim;
use crate::events::{CallFate, Event};
use crate::record::StoredResponse;
use crate::reply::{CallError, Failure, Fate, Reply};
use crate::store::StoreError;

/// A call that was announced, [`Claim::open`]. Dropping it leaves the call open: nobody knows whether it happened.
#[derive(Debug)]
#[must_use = "the call is announced; make it, or withdraw it"]
pub struct Call {
    claim: Claim,
    call: CallRecord,
    /// Whether this attempt announced it first. Only then does "it never left" close it: what an earlier attempt
    /// did, this one does not know.
    first: bool,
    /// Whether it was announced in a transaction that is not known to be committed.
    uncommitted: bool,
}

/// Why a call was not made, or cannot be told. Through `?` it is opaque to the client, who gets a problem that says
/// what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCalled {
    /// The engine was built without this call.
    #[error(
        "operation `{operation}` announces the call `{call}`, which was not declared: add `.call::<…>(\"{call}\", class)` where the engine is built"
    )]
    Undeclared {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
    },
    /// This attempt has made a call of that name already. Two effects of one command are two calls, with two names.
    #[error(
        "the call `{0}` was made in this attempt already; a second effect needs a name of its own (`{0}_2`), declared as well"
    )]
    Twice(String),
    /// Somebody else owns the record now.
    #[error("the claim was lost before the call `{0}` was made")]
    Lost(String),
    /// The announcement could not be stored.
    #[error("the call `{call}` could not be announced")]
    NotAnnounced {
        /// The call.
        call: String,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// An earlier attempt made the call, and its provider may have forgotten that by now.
    #[error("the call `{0}` was made before, and cannot be made again safely")]
    TooOld(String),
    /// The transaction that announced the call was not committed, so nobody but this attempt knew of it.
    #[error("the transaction that announces the call `{0}` is not committed: commit it, then make the call")]
    NotCommitted(String),
    /// The outcome is not of the type that the work asks for, or does not serialise.
    #[error("the outcome of the call `{call}` cannot be stored, or read back")]
    Outcome {
        /// The call.
        call: String,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
}

impl NotCalled {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Undeclared { .. } => "CALL_UNDECLARED",
            Self::Twice(_) => "CALL_MADE_TWICE",
            Self::Lost(_) => "CALL_CLAIM_LOST",
            Self::NotAnnounced { .. } => "CALL_NOT_ANNOUNCED",
            Self::TooOld(_) => "CALL_TOO_OLD",
            Self::NotCommitted(_) => "CALL_NOT_COMMITTED",
            Self::Outcome { .. } => "CALL_OUTCOME_UNREADABLE",
        }
    }
}

impl Call {
    pub(super) fn new(claim: Claim, call: CallRecord, first: bool) -> Self {
        Self { claim, call, first, uncommitted: false }
    }

    /// The same, announced in a transaction that is still to be committed.
    pub(super) fn until_committed(self) -> Self {
        Self { uncommitted: true, ..self }
    }

    /// The key that the provider must be given.
    #[must_use]
    pub fn key(&self) -> &DownstreamKey {
        &self.call.key
    }

    /// Makes the call and keeps its outcome, or gives the outcome that an earlier attempt kept. Where the claim is known to
    /// be lost nothing is sent.
    ///
    /// # Errors
    /// [`Failure`], to be passed on with `?`; see [`Claim::call`].
    pub async fn run<T, E, F, Fut>(self, make: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        E: CallError,
        F: FnOnce(DownstreamKey) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        match &self.call.state {
            CallState::Applied(outcome) => {
                let outcome = serde_json::from_slice(outcome);
                return outcome.map_err(|source| Failure::unknown(self.unreadable(source)));
            }
            CallState::Rejected(outcome) => return Err(Failure::refused(self.stored_refusal(outcome))),
            CallState::Open | CallState::Withdrawn => {}
        }
        if self.uncommitted {
            self.claim.is_announced(&self.call.name).await?;
        }
        // Whoever owns the record now may be making it, or asking what became of it.
        if self.claim.is_lost() {
            return Err(NotCalled::Lost(self.call.name).into());
        }
        let begun = Instant::now();
        let made = make(self.call.key.clone()).await;
        self.tell(&made, begun.elapsed());
        match made {
            Ok(outcome) => {
                self.done(&outcome).await?;
                Ok(outcome)
            }
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// Keeps the outcome: the call is done, and no attempt makes it again.
    ///
    /// # Errors
    /// [`NotCalled::Outcome`] for an outcome that JSON cannot hold; the call then stays open.
    pub async fn done<T: Serialize>(self, outcome: &T) -> Result<(), NotCalled> {
        let bytes = serde_json::to_vec(outcome).map_err(|source| self.unreadable(source))?;
        self.close(CallState::Applied(bytes)).await;
        Ok(())
    }

    /// Takes the announcement back: the call provably never left. One that an earlier attempt announced stays open.
    pub async fn withdraw(self) {
        if self.first {
            self.close(CallState::Withdrawn).await;
        }
    }

    fn tell<T, E: CallError>(&self, made: &Result<T, E>, took: Duration) {
        let fate = match made.as_ref().map_err(CallError::fate) {
            Ok(_) => CallFate::Applied,
            Err(Fate::Refused) => CallFate::Rejected,
            Err(Fate::NeverLeft) => CallFate::NeverLeft,
            Err(Fate::Unknown) => CallFate::Unknown,
        };
        let operation = self.claim.scope().operation();
        self.claim.engine.observer.observe(&Event::Called { operation, call: &self.call.name, fate, took });
    }

    async fn failed<E: CallError>(self, error: E) -> Failure {
        let retry_after = error.retry_after();
        let failure = match error.fate() {
            Fate::Refused => {
                let reply = error.reply().unwrap_or_else(|| self.claim.engine.call_refused(&self.call.name));
                let stored = reply.stored(&self.claim.engine.kept_headers, usize::MAX);
                self.close(CallState::Rejected(stored.to_bytes())).await;
                return Failure::refused(reply);
            }
            Fate::NeverLeft => {
                self.withdraw().await;
                Failure::from(error)
            }
            Fate::Unknown => Failure::from(error),
        };
        match retry_after {
            Some(span) => failure.retry_after(span),
            None => failure,
        }
    }

    async fn close(&self, state: CallState) {
        self.claim.progress.lock().await.close(&self.call.name, state);
    }

    fn stored_refusal(&self, outcome: &[u8]) -> Reply {
        match StoredResponse::from_bytes(outcome) {
            Some(stored) => stored.into(),
            None => self.claim.engine.call_refused(&self.call.name),
        }
    }

    fn unreadable(&self, source: serde_json::Error) -> NotCalled {
        NotCalled::Outcome { call: self.call.name.clone(), source }
    }
}

//! Records written in the application's transaction: the commit, announcements, checkpoints.

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;

use crate::calls::CallRecord;
use crate::decide::{Becomes, Ended, becomes};
use crate::engine::claim::{Announcing, Progress};
use crate::engine::{Call, Claim, NotCalled, Outcome};
use crate::record::{Checkpoint, StatusName};
use crate::reply::Reply;
use crate::store::{End, Fenced, Finish, Joins, Store, StoreError, after, unwrapped};

/// An end that was written in a transaction, and how far its commit came.
#[derive(Clone)]
pub(super) struct Committing {
    reply: Reply,
    status: StatusName,
    expires_at: SystemTime,
    fate: Commit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    Done,
    /// It was sent, and its answer was lost.
    Unknown,
    /// It was never sent: everything is rolled back.
    Never,
}

impl Committing {
    fn never() -> Self {
        let status = StatusName::InProgress;
        Self { reply: Reply::status(500), status, expires_at: SystemTime::UNIX_EPOCH, fate: Commit::Never }
    }

    /// The outcome and how the record stands by it, where the commit is known to have happened; `shown` is how it stands
    /// under this claim.
    pub(super) fn outcome(self, shown: Option<StatusName>) -> Option<(Outcome, StatusName)> {
        let committed = match self.fate {
            Commit::Done => true,
            Commit::Unknown => shown == Some(self.status),
            Commit::Never => false,
        };
        committed.then_some((Outcome::Done { reply: self.reply, expires_at: self.expires_at }, self.status))
    }
}

/// Proof that business rows and completion were committed; the work returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "return it from the work, it is the answer"]
pub struct Committed(Reply);

impl From<Committed> for Reply {
    fn from(committed: Committed) -> Self {
        committed.0
    }
}

impl Claim {
    /// Completes the record inside of the application's transaction, and commits it: business rows, outbox and
    /// completion together, or nothing of them. The work returns what it gets; nothing is completed again.
    ///
    /// The transaction must be one of the database that the engine's store keeps its records in, and is rolled back
    /// whenever this fails. From here on the answer of this claim is `reply`, whatever the work returns, if and only if
    /// the commit happened.
    ///
    /// # Errors
    /// [`NotCommitted`], to be passed on with `?`: what became of the record is found out, and the client told.
    pub async fn commit<S, T>(self, tx: T, reply: Reply) -> Result<Committed, NotCommitted>
    where
        S: Store + 'static,
        T: Joins<S>,
    {
        let status = reply.status;
        self.end_in(tx, reply).await?.map_err(|_| NotCommitted::NotFinal { status })
    }

    /// The same; an answer that is not final comes back, with the transaction rolled back.
    pub(super) async fn end_in<S, T>(&self, mut tx: T, reply: Reply) -> Result<Result<Committed, Reply>, NotCommitted>
    where
        S: Store + 'static,
        T: Joins<S>,
    {
        let mut progress = self.progress.lock().await;
        // Until it is committed it is not, whatever the work makes of the errors below.
        progress.committing = Some(Committing::never());
        let store = unwrapped::<S>(&*self.engine.store).map_err(NotCommitted::NotWritten)?;
        let rules = self.rules();
        let becomes = becomes(Ended::Replied(reply.status), &progress.calls, self.store_now(), rules);
        let (response, keep) = (reply.kept(becomes, rules, &self.engine.kept_headers), rules.keep());
        let end = match becomes {
            Becomes::Completed => End::Completed { response, keep },
            Becomes::FailedReplayable => End::FailedReplayable { response, keep },
            Becomes::FailedRetryable | Becomes::Unknown => {
                progress.committing = None;
                return Ok(Err(reply));
            }
        };
        let status = end.status();
        let finish = Finish { closed: progress.unwritten.clone(), resource: progress.resource.clone(), end };
        let written = match self.recorded {
            true => tx.finish(store, &self.live.ownership, &finish).await,
            false => Ok(Fenced::Written { now: self.store_now() }),
        };
        let now = match written {
            Ok(Fenced::Written { now }) => now,
            Ok(Fenced::Refused(_)) => {
                self.live.lose();
                return Err(NotCommitted::Lost);
            }
            Err(error) => return Err(NotCommitted::NotWritten(error)),
        };
        let expires_at = after(now, keep.window);
        let committing = Committing { reply: reply.clone(), status, expires_at, fate: Commit::Unknown };
        progress.committing = Some(committing.clone());
        tx.commit().await.map_err(NotCommitted::Unknown)?;
        progress.committing = Some(Committing { fate: Commit::Done, ..committing });
        self.live.end();
        Ok(Ok(Committed(reply)))
    }

    /// Announces a call inside of the application's transaction, which the application commits: the announcement with
    /// the business row and the outbox row. The call can be made after that, and is not made before: [`Call::run`]
    /// reads the announcement first.
    ///
    /// # Errors
    /// [`NotCalled`]; nothing left. The transaction stays usable where the claim was lost.
    pub async fn open_in<S, T>(&self, tx: &mut T, name: &str) -> Result<Call, NotCalled>
    where
        S: Store + 'static,
        T: Joins<S>,
    {
        if !self.recorded {
            return self.open(name).await;
        }
        let mut progress = self.progress.lock().await;
        let (before, new) = match self.announcing(&progress, name)? {
            Announcing::Done(done) => return Ok(Call::new(self.clone(), done, false)),
            Announcing::New(before, new) => (before, new),
        };
        let step = self.step(&progress, Some(new.clone()), None);
        let failed = |source| NotCalled::NotAnnounced { call: name.to_owned(), source };
        let store = unwrapped::<S>(&*self.engine.store).map_err(failed)?;
        match tx.step(store, &self.live.ownership, &step).await.map_err(failed)? {
            Fenced::Written { now } => {
                // Outcomes are written again with the next write, in case this transaction is rolled back; but "it
                // never left" of an earlier try must not close the announcement that was made now.
                progress.unwritten.retain(|closed| closed.name != name);
                let durable = before.as_ref().is_some_and(CallRecord::is_open);
                let call = self.announced(&mut progress, before, new, now)?;
                if durable {
                    return Ok(call);
                }
                progress.joined.push(name.to_owned());
                Ok(call.until_committed())
            }
            Fenced::Refused(_) => {
                self.live.lose();
                Err(NotCalled::Lost(name.to_owned()))
            }
        }
    }

    /// [`Self::checkpoint`] inside of the application's transaction, which the application commits.
    ///
    /// # Errors
    /// [`NotCheckpointed`]. The transaction stays usable where the claim was lost.
    pub async fn checkpoint_in<S, T, D>(
        &self,
        tx: &mut T,
        name: &str,
        version: u32,
        data: &D,
    ) -> Result<(), NotCheckpointed>
    where
        S: Store + 'static,
        T: Joins<S>,
        D: Serialize + Sync,
    {
        if !self.recorded {
            return Ok(());
        }
        let checkpoint = NotCheckpointed::written(name, version, data)?;
        let step = self.step(&*self.progress.lock().await, None, Some(checkpoint));
        let store = unwrapped::<S>(&*self.engine.store).map_err(NotCheckpointed::NotStored)?;
        match tx.step(store, &self.live.ownership, &step).await.map_err(NotCheckpointed::NotStored)? {
            Fenced::Written { .. } => Ok(()),
            Fenced::Refused(_) => {
                self.live.lose();
                Err(NotCheckpointed::Lost)
            }
        }
    }

    /// Makes sure that a call announced in a transaction is announced for everybody.
    pub(super) async fn is_announced(&self, name: &str) -> Result<(), NotCalled> {
        let mut progress = self.progress.lock().await;
        self.read_joined(&mut progress)
            .await
            .map_err(|source| NotCalled::NotAnnounced { call: name.to_owned(), source })?;
        if self.live.is_lost() {
            return Err(NotCalled::Lost(name.to_owned()));
        }
        if progress.calls.iter().any(|call| call.name == name && call.is_open()) {
            return Ok(());
        }
        Err(NotCalled::NotCommitted(name.to_owned()))
    }

    /// Reads what became of announcements that were made in transactions: committed, or rolled back as if never made.
    pub(super) async fn read_joined(&self, progress: &mut Progress) -> Result<(), StoreError> {
        if progress.joined.is_empty() {
            return Ok(());
        }
        let found = self.engine.store.look(self.scope()).await?;
        let Some(record) = found.map(|found| found.record).filter(|record| record.ownership() == self.live.ownership)
        else {
            self.live.lose();
            return Ok(());
        };
        for name in std::mem::take(&mut progress.joined) {
            let closed = progress.unwritten.iter().any(|closed| closed.name == name);
            let stored = record.calls.iter().find(|call| call.name == name).cloned();
            if !closed {
                progress.calls.retain(|call| call.name != name);
                progress.calls.extend(stored);
            }
        }
        Ok(())
    }
}

/// Why a transaction was not committed, or is not known to be. Passed on with `?` it ends the work, and what the record
/// says is what the client gets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCommitted {
    /// Somebody else owns the record now: rolled back.
    #[error("the claim was lost: the transaction was rolled back")]
    Lost,
    /// The record could not be completed in it: rolled back. Trying the whole transaction again may help.
    #[error("the record could not be completed: the transaction was rolled back")]
    NotWritten(#[source] StoreError),
    /// The commit failed, and nobody knows yet whether it happened. It is found out when the work ends.
    #[error("the commit failed; whether it happened is found out from the record")]
    Unknown(#[source] StoreError),
    /// An answer with this status is not the end of a command, so nothing may be committed with it: rolled back. Return
    /// it as [`Failure::reply`](crate::Failure::reply) instead.
    #[error("an answer with status {status} is not final: the transaction was rolled back")]
    NotFinal {
        /// The status.
        status: u16,
    },
}

impl NotCommitted {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lost => "COMMIT_CLAIM_LOST",
            Self::NotWritten(_) => "COMMIT_NOT_WRITTEN",
            Self::Unknown(_) => "COMMIT_UNKNOWN",
            Self::NotFinal { .. } => "COMMIT_NOT_FINAL",
        }
    }
}

/// Why a checkpoint was not kept. What it was kept for must then not be relied on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCheckpointed {
    /// Somebody else owns the record now.
    #[error("the claim was lost before the checkpoint was kept")]
    Lost,
    /// The store failed.
    #[error("the checkpoint could not be stored")]
    NotStored(#[source] StoreError),
    /// JSON cannot hold the data.
    #[error("the checkpoint's data cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

impl NotCheckpointed {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lost => "CHECKPOINT_CLAIM_LOST",
            Self::NotStored(_) => "CHECKPOINT_NOT_STORED",
            Self::Unwritable(_) => "CHECKPOINT_UNWRITABLE",
        }
    }

    pub(super) fn written<T: Serialize>(name: &str, version: u32, data: &T) -> Result<Checkpoint, Self> {
        let data = serde_json::to_vec(data).map_err(Self::Unwritable)?;
        Ok(Checkpoint { name: name.to_owned(), version, data })
    }
}

impl fmt::Debug for Committing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committing").field("status", &self.status).finish_non_exhaustive()
    }
}

//! What is written, under which guard, and what became of it.

use std::time::{Duration, SystemTime};

use crate::calls::{CallClass, CallState, DownstreamKey};
use crate::hash::CommandHash;
use crate::key::Scope;
use crate::record::{Checkpoint, Fence, Keep, OwnerToken, Record, ResourceRef, Revision, StatusName, StoredResponse};

/// What [`Claiming::claim`](super::Claiming::claim) inserts.
#[derive(Debug, Clone)]
pub struct NewClaim {
    /// Whose record.
    pub scope: Scope,
    /// What the command means.
    pub hash: CommandHash,
    /// The attempt's own name.
    pub owner: OwnerToken,
    /// How long nobody may take over.
    pub lease: Duration,
}

/// What a claim met.
#[derive(Debug, Clone)]
pub enum Claimed {
    /// No record was there: the caller owns it, under [`Fence::FIRST`].
    Inserted {
        /// The store's clock at the insert.
        now: SystemTime,
    },
    /// A record was there; perhaps the caller's own, of a claim whose answer was lost.
    Found(Box<Found>),
    /// Somebody is writing this record right now, and has not committed: it is not to be read yet, and nobody else's.
    Held,
}

/// A record as it stood at one moment of the store's clock.
#[derive(Debug, Clone)]
pub struct Found {
    /// The record.
    pub record: Record,
    /// The moment.
    pub now: SystemTime,
}

/// Where a page of [`Recovering::unsettled`](super::Recovering::unsettled) ended; the next one begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// [`transition::due_at`](crate::transition::due_at) of the last record.
    pub at: SystemTime,
    /// Its scope.
    pub scope: Scope,
}

/// Everything that a decision was made on, so that the write that follows happens only if all of it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Whose record.
    pub scope: Scope,
    /// The fence it had.
    pub fence: Fence,
    /// The attempt that owned it. Fences and revisions count from 1 again in a record that was made anew, after the first
    /// was forgotten or lost in a failover; no two records have an attempt in common.
    pub owner: OwnerToken,
    /// The revision it had: an announcement made since then has raised it.
    pub revision: Revision,
    /// The hash it had.
    pub hash: CommandHash,
    /// Where it stood. The store tests by its own clock that its time has come: the lease is over
    /// (`in_progress`), or the next attempt is due (`failed_retryable`).
    pub status: StatusName,
}

impl Seen {
    /// What was seen of `record`.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self {
            scope: record.scope.clone(),
            fence: record.fence,
            owner: record.owner,
            revision: record.revision,
            hash: record.hash,
            status: record.status.name(),
        }
    }
}

/// What [`Claiming::take_over`](super::Claiming::take_over) writes: the next fence, this owner, a full lease, one attempt more.
#[derive(Debug, Clone)]
pub struct TakeOver {
    /// What the decision was made on.
    pub seen: Seen,
    /// The new attempt's name.
    pub owner: OwnerToken,
    /// Its lease.
    pub lease: Duration,
}

/// What became of a write that a [`Seen`] guards.
#[derive(Debug, Clone)]
pub enum Guarded {
    /// It was written.
    Written {
        /// The store's clock at the write.
        now: SystemTime,
    },
    /// Something had changed, so nothing was written; the record as it stands now, `None` if it is gone.
    Changed(Option<Box<Found>>),
}

/// What became of a write that an [`Ownership`](crate::Ownership) guards.
#[derive(Debug, Clone)]
pub enum Fenced {
    /// It was written.
    Written {
        /// The store's clock at the write.
        now: SystemTime,
    },
    /// The record is not in progress under this ownership, so nothing was written: the record as it stands now,
    /// `None` if it is gone. It may show the caller's own end, of a finish whose answer was lost.
    Refused(Option<Box<Found>>),
}

/// One write of an owner in the middle of its work.
#[derive(Debug, Clone)]
pub struct Step {
    /// Outcomes of calls made since the last write.
    pub closed: Vec<ClosedCall>,
    /// The call to announce. One that is already open stays as it is, `opened_at` too.
    pub open: Option<NewCall>,
    /// What the command makes.
    pub resource: Option<ResourceRef>,
    /// How far the work has come.
    pub checkpoint: Option<Checkpoint>,
    /// The lease from now on.
    pub lease: Duration,
}

/// A call to announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// Its name within the operation.
    pub name: String,
    /// What its provider promises.
    pub class: CallClass,
    /// The key it will be made with.
    pub key: DownstreamKey,
}

/// A call that is open no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedCall {
    /// Its name within the operation.
    pub name: String,
    /// Where it stands now.
    pub state: CallState,
}

/// The last write of an owner.
#[derive(Debug, Clone)]
pub struct Finish {
    /// Outcomes of calls made since the last write.
    pub closed: Vec<ClosedCall>,
    /// What the command made, where the work said so since the last write.
    pub resource: Option<ResourceRef>,
    /// How the work ended.
    pub end: End,
}

/// How an attempt ended. Spans are counted by the store from the moment of the write.
#[derive(Debug, Clone)]
pub enum End {
    /// T4
    Completed {
        /// The answer to keep.
        response: StoredResponse,
        /// For how long.
        keep: Keep,
    },
    /// T5
    FailedReplayable {
        /// The refusal to keep.
        response: StoredResponse,
        /// For how long.
        keep: Keep,
    },
    /// T6
    FailedRetryable {
        /// When the work may run again.
        retry_in: Duration,
        /// How long the key is remembered from this attempt on.
        keep: Keep,
    },
    /// T7
    Unknown {
        /// When the providers are asked.
        ask_in: Duration,
    },
}

impl End {
    /// The status it leads to.
    #[must_use]
    pub fn status(&self) -> StatusName {
        match self {
            Self::Completed { .. } => StatusName::Completed,
            Self::FailedReplayable { .. } => StatusName::FailedReplayable,
            Self::FailedRetryable { .. } => StatusName::FailedRetryable,
            Self::Unknown { .. } => StatusName::Unknown,
        }
    }
}

/// T9, T9w, T9f and the parking of T13: what becomes of a record that nobody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tended {
    /// T9w: from `in_progress` to `failed_retryable`.
    Released {
        /// When the next attempt may run.
        retry_in: Duration,
        /// How long the key is remembered.
        keep: Keep,
    },
    /// T9, T9f: from `in_progress` or `failed_retryable` to `unknown_requires_recovery`.
    Stranded {
        /// When the providers are asked.
        ask_in: Duration,
    },
    /// T9, T9f, T13: a person is called. From `in_progress` it becomes `unknown_requires_recovery`, the others stay.
    Parked {
        /// When the providers are asked next, in case they can be.
        ask_in: Duration,
    },
}

/// What a worker writes that asked the providers of a record, T11 to T13.
#[derive(Debug, Clone)]
pub struct Answered {
    /// What the providers said.
    pub closed: Vec<ClosedCall>,
    /// What the command made.
    pub resource: Option<ResourceRef>,
    /// Where the record goes.
    pub end: AnsweredEnd,
}

/// Where a record goes whose providers were asked.
#[derive(Debug, Clone)]
pub enum AnsweredEnd {
    /// T11, or T11r and T12: settled, or to be run again.
    Ended(End),
    /// T13: nobody knows yet.
    StillUnknown {
        /// When they are asked again.
        ask_in: Duration,
        /// Whether a person is called.
        park: bool,
    },
}

/// T14: what a person decides of a parked record.
#[derive(Debug, Clone)]
pub enum Verdicted {
    /// It ended like that; calls that are still open are closed like that.
    Ended {
        /// What is known now of its calls.
        closed: Vec<ClosedCall>,
        /// What the command made, where the verdict says so.
        resource: Option<ResourceRef>,
        /// How it ended.
        end: End,
    },
    /// Its providers are asked again, at once.
    AskAgain,
}

/// Who did something to a record by hand, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose record; `None` where it is about an operation as a whole.
    pub scope: Option<Scope>,
    /// What was done, `resolve`.
    pub action: String,
    /// Who.
    pub actor: String,
    /// Why, in the actor's words.
    pub reason: String,
}

/// Something learned about a call from outside of its owner: a late outcome, a provider's webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The call, by the key it was made with.
    pub key: DownstreamKey,
    /// Where it came from, `webhook`.
    pub source: String,
    /// What was learned: [`CallState::Applied`], [`CallState::Rejected`] or [`CallState::Withdrawn`].
    pub state: CallState,
}

/// Something that was kept, and when, by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated<T> {
    /// When it was kept.
    pub at: SystemTime,
    /// What.
    pub what: T,
}

/// How long those records have waited that wait longest, of each kind: by the store's clock, since their keys were first
/// seen. Zero where none waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oldest {
    /// In progress, with a lease that is over: nobody runs it.
    pub abandoned: Duration,
    /// Unknown, and its providers are asked.
    pub unknown: Duration,
    /// Parked: it waits for a person.
    pub parked: Duration,
}

/// What one batch of cleaning may do.
#[derive(Debug, Clone, Copy)]
pub struct SweepOrder {
    /// At most so many records of each kind.
    pub limit: u32,
    /// Also forgets records whose calls were ever announced. Then nothing but the business rows protects a key that
    /// is used again.
    pub purge_tombstones: bool,
}

/// What one batch of cleaning did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bodies dropped before their window was over.
    pub bodies: u64,
    /// T16: records whose window was over.
    pub expired: u64,
    /// T17: records that are gone.
    pub purged: u64,
}

//! What a database must do for idem: one atomic insert and fenced updates. It decides nothing.
//!
//! The traits are small and object-safe, and no method has a default body: a guarantee cannot be lost by not
//! writing a method. Every time in them is the store's own (its database's), returned beside what was read;
//! durations go in, instants come out.
//!
//! A write whose answer was lost may have happened. Each write is therefore safe to send again with the same
//! [`OwnerToken`]: a claimant that finds its own token is the owner, a finish that finds its own end is done.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::calls::{CallClass, CallState, DownstreamKey};
use crate::hash::CommandHash;
use crate::key::Scope;
use crate::record::{Fence, OwnerToken, Ownership, Record, ResourceRef, Revision, StatusName, StoredResponse};

/// Everything that the engine needs of a store.
pub trait Store: Claiming + Owning {}

impl<S: Claiming + Owning + ?Sized> Store for S {}

/// Getting a record, or finding out whose it is.
#[async_trait]
pub trait Claiming: Send + Sync {
    /// T1: inserts the record, or reads the one that is there. Insert first: there is no moment between a look and
    /// a write in which a rival could come.
    ///
    /// # Errors
    /// [`StoreError`]; whether the insert happened is then unknown, and the same claim may be sent again.
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError>;

    /// T8, T15: a new owner for a record that stands exactly as it was [`Seen`]. Of many rivals one wins.
    ///
    /// # Errors
    /// [`StoreError`]; the same take-over may be sent again.
    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError>;

    /// T9: what was in progress is nobody's, and nobody knows how it ended. `seen` guards as in a take-over.
    ///
    /// # Errors
    /// [`StoreError`]; the same may be sent again.
    async fn strand(&self, seen: &Seen, ask_in: Duration) -> Result<Guarded, StoreError>;
}

/// What the owner of a record in progress may write.
#[async_trait]
pub trait Owning: Send + Sync {
    /// T3: announces a call, keeps outcomes, names the resource; renews the lease in the same statement.
    ///
    /// # Errors
    /// [`StoreError`]; the same step may be sent again.
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError>;

    /// T4 to T7: how it ended, with the outcomes that were not written yet.
    ///
    /// # Errors
    /// [`StoreError`]; the same finish may be sent again.
    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError>;

    /// A [`Pulse`] for the heartbeat's thread, with connections of its own: handlers that block every thread of the
    /// application's runtime must not stop it.
    ///
    /// # Errors
    /// [`StoreError`] where no connection is to be had.
    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError>;
}

/// Renews leases, from a thread that may block.
pub trait Pulse: Send {
    /// T2: renews the leases of all these owners, in one statement where the database can; says of each, in order,
    /// whether it still owns its record.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing is known of any of them, and the next beat tries again.
    fn beat(&mut self, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, StoreError>;
}

/// What [`Claiming::claim`] inserts.
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
}

/// A record as it stood at one moment of the store's clock.
#[derive(Debug, Clone)]
pub struct Found {
    /// The record.
    pub record: Record,
    /// The moment.
    pub now: SystemTime,
}

/// Everything that a decision was made on, so that the write that follows happens only if all of it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Whose record.
    pub scope: Scope,
    /// The fence it had.
    pub fence: Fence,
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
            revision: record.revision,
            hash: record.hash,
            status: record.status.name(),
        }
    }
}

/// What [`Claiming::take_over`] writes: the next fence, this owner, a full lease, one attempt more.
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

/// What became of a write that an [`Ownership`] guards.
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

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database is away, too slow, or gave up a transaction: the same request may succeed later. Whether a
    /// write happened is unknown.
    #[error("the idempotency store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database answered with something that idem cannot work with, a missing table for instance. Trying
    /// again does not help; the source says what does.
    #[error("the idempotency store cannot be used")]
    Unusable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored record does not read as one: not written by this release, or damaged.
    #[error("the idempotency store holds a record that cannot be read ({0})")]
    Unreadable(&'static str),
}

impl StoreError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "STORE_UNAVAILABLE",
            Self::Unusable(_) => "STORE_UNUSABLE",
            Self::Unreadable(_) => "STORE_RECORD_UNREADABLE",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

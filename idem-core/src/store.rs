//! What a database must do for idem: one atomic insert and fenced updates. It decides nothing.
//!
//! The traits are small and object-safe, and no method has a default body: a guarantee cannot be lost by not
//! writing a method. Every time in them is the store's own (its database's), returned beside what was read;
//! durations go in, instants come out.
//!
//! A write whose answer was lost may have happened. Each write is therefore safe to send again with the same
//! [`OwnerToken`](crate::OwnerToken): a claimant that finds its own token is the owner, a finish that finds its own end is done.

mod error;
mod join;
mod write;

use std::any::Any;
use std::time::Duration;

use async_trait::async_trait;

pub use error::StoreError;
pub(crate) use join::unwrapped;
pub use join::{Joins, OtherStore, TxStore};
pub use write::{
    Answered, AnsweredEnd, AuditEntry, Claimed, ClosedCall, Dated, End, Evidence, Fenced, Finish, Found, Guarded, Mark,
    NewCall, NewClaim, Oldest, Seen, Step, SweepOrder, Swept, TakeOver, Tended, Verdicted,
};

pub use crate::record::after;

use crate::key::Scope;
use crate::record::{Ownership, Record};

/// Everything that idem needs of a store.
pub trait Store: Claiming + Owning + Recovering + Sweeping + Keeping {
    /// The store behind this one, where this one only stands in front of it (a cache); like `Error::source`.
    fn inner(&self) -> Option<&dyn Store>;

    /// The store itself, for transactions that name its type.
    fn as_any(&self) -> &dyn Any;
}

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

    /// The record of `scope`, if there is one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError>;

    /// T9, T9w, T9f, T13: what becomes of a record that nobody runs, if it stands exactly as it was seen.
    ///
    /// # Errors
    /// [`StoreError`]; the same may be sent again.
    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError>;
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

    /// Whether each of these owners still owns its record, in order; renews nothing.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing is known of any of them.
    fn owns(&mut self, owners: &[Ownership]) -> Result<Vec<bool>, StoreError>;
}

/// Records that nobody comes for, and what is learned about them.
#[async_trait]
pub trait Recovering: Send + Sync {
    /// Records that a worker has to look at: in progress with a lease that was over `grace` ago, retryable with an open
    /// call and due `grace` ago, unknown and due to be asked. At most `limit`, in the order of
    /// [`transition::due_at`](crate::transition::due_at) and then of the scope, those after `after`.
    ///
    /// A worker goes on after the last one that it got until it gets none: many records stay due for as long as nobody
    /// can do anything about them, and those must not hide the others. Several workers may get the same; what they
    /// write is guarded.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError>;

    /// Every record that is not settled, for a person to look at: in progress, retryable with an open call, unknown,
    /// whether somebody cares for it right now or not. At most `limit`, in the order of
    /// [`transition::due_at`](crate::transition::due_at) and then of the scope, those after `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError>;

    /// How long those have waited that wait longest, of all records. One in progress may be left out until a worker has
    /// looked for what is due after its lease was over.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn oldest(&self) -> Result<Oldest, StoreError>;

    /// T10: a worker takes an unknown record to ask its providers: the next fence, its lease, one question more. The
    /// status stays, so that a crash in recovery never looks like something that may run.
    ///
    /// # Errors
    /// [`StoreError`]; the same may be sent again.
    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError>;

    /// T11, T11r, T12, T13: what the providers said, by the worker that asked them.
    ///
    /// # Errors
    /// [`StoreError`]; the same may be sent again.
    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError>;

    /// T14: what a person decides of a parked record, with a row in the audit.
    ///
    /// # Errors
    /// [`StoreError`]; the same may be sent again.
    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError>;

    /// Keeps what was learned about a call for as long as its record, and makes its record due at once. The record's scope, or `None`
    /// where no call has that key; then nothing is kept.
    ///
    /// # Errors
    /// [`StoreError`]; sent again it may stand there twice.
    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError>;

    /// What was learned about the calls of a record, in the order in which it came.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError>;
}

/// Forgetting what need not be known any more.
#[async_trait]
pub trait Sweeping: Send + Sync {
    /// T16, T17 and bodies whose retention is over, in one small batch; safe beside any number of others. Never a
    /// record in progress, unknown, or with an open call.
    ///
    /// It may take less than it was allowed to, of one kind or of all together. That it swept nothing at all says that
    /// nothing is over any more, but for what another sweeper has in hand, and what lies behind very many records that
    /// are not: a later batch comes to them.
    ///
    /// # Errors
    /// [`StoreError`]; the next round goes on.
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError>;
}

/// What is kept beside the records: contracts, settings, the audit.
#[async_trait]
pub trait Keeping: Send + Sync {
    /// The contract texts that this store has seen for a version of an operation, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn contracts(&self, operation: &str, version: u32) -> Result<Vec<String>, StoreError>;

    /// Adds a contract text as the `number`th (0 is the first) of its version. False, and nothing written, where
    /// another node has added one meanwhile: read again, compare again.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn add_contract(&self, operation: &str, version: u32, number: u32, text: &str) -> Result<bool, StoreError>;

    /// A setting's value: `value` if it had none, else what it has.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn settle_setting(&self, name: &str, value: &str) -> Result<String, StoreError>;

    /// Every setting and its value, in the order of their names.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError>;

    /// A worker is alive, now.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn sign_of_life(&self) -> Result<(), StoreError>;

    /// How long ago a worker gave a sign of life; `None`: none ever did.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn silence(&self) -> Result<Option<Duration>, StoreError>;

    /// Writes a row into the audit.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// The audit's rows about a record, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError>;
}

//! Events that leave with a business transaction, or not at all.
//!
//! [`append`] writes an event inside of the transaction that also writes the business rows and completes the record
//! (`claim.commit(tx, …)`, `run_tx`, a reconciler's `settle`). A [`Relay`] publishes what is committed: **at least once**,
//! and **in order for each key**. A consumer that must act once says so with [`inbox::once`](crate::inbox::once).
//!
//! ```
//! # async fn pay(pool: sqlx::SqlitePool, payment: &str, id: String) -> Result<(), Box<dyn std::error::Error>> {
//! use idem_sqlx::outbox::{self, Event};
//!
//! let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
//! sqlx::query("INSERT INTO payments (id, state) VALUES (?, 'paid')").bind(payment).execute(&mut *tx).await?;
//! let paid = Event {
//!     id, // claim.derived_id("payment_paid")
//!     topic: "payments".into(),
//!     key: payment.into(),
//!     kind: "payment_paid".into(),
//!     version: 1,
//!     payload: br#"{"amount":"10.00"}"#.to_vec(),
//! };
//! outbox::append(&mut tx, &paid).await?;
//! tx.commit().await?; // or claim.commit(tx, reply)
//! # Ok(()) }
//! # let dir = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.path().join("a.db")).create_if_missing(true);
//! # let pool = sqlx::SqlitePool::connect_with(options).await?;
//! # idem_sqlx::SqliteStore::beside(&pool).await?;
//! # sqlx::raw_sql("CREATE TABLE payments (id TEXT, state TEXT)").execute(&pool).await?;
//! # pay(pool, "pay_1", "payment_paid_1".into()).await
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dead;
mod event;
mod line;
mod publish;
mod queue;
mod relay;

use std::time::Duration;

use idem_core::StoreError;
use sqlx::Transaction;

pub use dead::{ByHandError, DeadLetter, DeadLetters};
pub(crate) use event::check_name;
pub use event::{Event, InvalidEvent};
pub use publish::{Publish, PublishError};
pub use queue::OutboxStore;
pub(crate) use queue::statements;
pub(crate) use relay::LONGEST_SPAN;
pub use relay::{Relay, RelayOptions, Relayed};

use crate::error::Error;
use crate::tables::Tables;

/// What became of an event that was to be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is in the transaction.
    New,
    /// An earlier run appended it, and what it wrote stands, payload and all.
    Before,
}

/// Appends an event inside of the transaction, with which it is committed or taken back.
///
/// An event of the same id, topic, key and kind is appended once, however often the work runs, as long as the first one
/// is kept ([`RelayOptions::retention`] after it went out; longer than the replay window of the command, therefore).
///
/// On PostgreSQL it locks the event's key until the transaction ends, so that the order of commits is the order of
/// events; two transactions that append to the same keys in opposite orders may be given up for one another, as with
/// any rows.
///
/// # Errors
/// [`AppendError`]. On PostgreSQL the transaction cannot be used any more after [`AppendError::Database`].
pub async fn append<DB: Tables>(tx: &mut Transaction<'_, DB>, event: &Event) -> Result<Appended, AppendError> {
    event.check()?;
    if DB::append(tx, event).await? {
        return Ok(Appended::New);
    }
    match DB::appended(tx, &event.id).await? {
        Some([topic, key, kind]) if topic == event.topic && key == event.key && kind == event.kind => {
            Ok(Appended::Before)
        }
        Some(_) => Err(AppendError::OtherEvent(event.id.clone())),
        // Cleaned up in between, or committed after this transaction began to see.
        None => Err(Error::Serialization(None).into()),
    }
}

/// Why an event was not appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// A name is empty, too long, or not text.
    #[error("it is no event that can be kept")]
    Invalid(#[from] InvalidEvent),
    /// The id belongs to an event of another topic, key or kind: this one would be lost.
    #[error("the id `{0}` belongs to another event")]
    OtherEvent(String),
    /// The database.
    #[error("the event cannot be appended")]
    Database(#[from] Error),
}

impl AppendError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(invalid) => invalid.code(),
            Self::OtherEvent(_) => "EVENT_ID_OF_ANOTHER",
            Self::Database(error) => error.code(),
        }
    }
}

/// What is not out yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Events that a relay has or will have.
    pub waiting: u64,
    /// Dead letters, which wait for a person.
    pub dead: u64,
    /// For how long the oldest of both has waited.
    pub oldest: Option<Duration>,
}

/// Counts what is not out yet, for a gauge: its cost grows with what it counts.
///
/// # Errors
/// [`StoreError`].
pub async fn backlog<S: OutboxStore>(store: &S) -> Result<Backlog, StoreError> {
    store.backlog().await
}

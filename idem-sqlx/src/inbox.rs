//! Messages that have one effect, however often they are delivered.
//!
//! [`once`] marks a message as seen and acts on it **in one transaction**, which it commits itself. Neither can be had
//! without the other: the work gets the transaction as a [`Marked`], which has no commit, and has to hand it back; where it
//! fails, panics or is dropped, the mark goes with the rows. So a message whose first delivery failed is acted on by the
//! second one, and a message is never marked before its effect is there.
//!
//! That holds for effects in the same database. For a call to the outside use
//! [`Engine::run`](idem_core::Engine::run) with the message's id as the key: it announces calls, and knows afterwards
//! which of them may have happened.

use std::error::Error as StdError;
use std::fmt;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use idem_core::StoreError;
use sqlx::{Database, Transaction};
use tokio::time::timeout;

use crate::error::Error;
use crate::outbox::{InvalidEvent, LONGEST_SPAN, OutboxStore, check_name};
use crate::tables::Tables;
use crate::tables::statements::Mark;

/// Who reads messages, and for how long it knows them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    name: String,
    keep: Duration,
}

impl Consumer {
    /// A consumer of that name. Each has marks of its own: a message has one effect for each consumer.
    ///
    /// # Errors
    /// [`InvalidEvent`] where the name is empty, longer than 255 bytes, or has control characters.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidEvent> {
        let name = name.into();
        check_name("consumer", &name)?;
        Ok(Self { name, keep: Duration::from_secs(30 * 24 * 60 * 60) })
    }

    /// How long a message is known again. Default 30 days, a hundred years at most. It must be longer than a message can come
    /// again: lie in the queue, among dead letters, or in a producer's own retries.
    #[must_use]
    pub fn keep(mut self, span: Duration) -> Self {
        self.keep = span.min(LONGEST_SPAN);
        self
    }
}

/// Whether a message was acted on just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<T> {
    /// It was: mark and effect are committed. What the work gave.
    First(T),
    /// An earlier delivery was; this one did nothing.
    Again,
}

/// A transaction in which the message is marked. It is used like the transaction itself (`&mut **tx` for a statement,
/// `&mut tx` for [`append`](crate::outbox::append)), but for its end, which is [`once`]'s.
///
/// ```compile_fail,E0507
/// # async fn early(tx: idem_sqlx::inbox::Marked<'static, sqlx::Sqlite>) {
/// tx.commit().await; // would be marked before its effect
/// # }
/// ```
pub struct Marked<'c, DB: Database>(Transaction<'c, DB>);

impl<'c, DB: Database> Deref for Marked<'c, DB> {
    type Target = Transaction<'c, DB>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<DB: Database> DerefMut for Marked<'_, DB> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<DB: Database> fmt::Debug for Marked<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Marked").finish_non_exhaustive()
    }
}

/// Acts on a message, unless an earlier delivery was acted on; what `work` writes is committed with the mark.
///
/// `event_id` stays the same when the message is delivered again: the producer's id of the event, not the queue's receipt,
/// and no hash of what it says. Where two producers may count alike, put the producer's name before it.
///
/// A second delivery at the same time waits for the end of the first one. On SQLite begin the transaction with
/// `BEGIN IMMEDIATE`, and do not call the engine of a store in the same file from `work`, which would wait for it.
///
/// ```
/// use idem_sqlx::inbox::{self, Consumer, Seen};
///
/// # async fn consume(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = Consumer::new("ledger")?;
/// for (delivery, seen) in [(1, Seen::First(())), (2, Seen::Again), (3, Seen::Again)] {
///     let tx = pool.begin_with("BEGIN IMMEDIATE").await?;
///     let told = inbox::once(tx, &ledger, "payment_paid_1", |mut tx| async move {
///         sqlx::query("INSERT INTO entries (amount) VALUES (1000)").execute(&mut **tx).await?;
///         Ok((tx, ()))
///     });
///     assert_eq!(told.await?, seen, "delivery {delivery}");
/// }
/// # Ok(()) }
/// # let dir = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.path().join("a.db")).create_if_missing(true);
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// # idem_sqlx::SqliteStore::beside(&pool).await?;
/// # sqlx::raw_sql("CREATE TABLE entries (amount INTEGER)").execute(&pool).await?;
/// # consume(pool).await })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`OnceError`]: the message is to be delivered again.
pub async fn once<'c, DB, W, F, T>(
    tx: Transaction<'c, DB>,
    consumer: &Consumer,
    event_id: &str,
    work: W,
) -> Result<Seen<T>, OnceError>
where
    DB: Tables,
    W: FnOnce(Marked<'c, DB>) -> F,
    F: Future<Output = Result<(Marked<'c, DB>, T), Box<dyn StdError + Send + Sync>>>,
{
    let (tx, mark) = mark(tx, consumer, event_id).await?;
    act(tx, (consumer, event_id), mark, work).await
}

/// The mark first, so that a second delivery waits for it; until [`act`] has committed it, it is not there.
pub(crate) async fn mark<'c, DB: Tables>(
    mut tx: Transaction<'c, DB>,
    consumer: &Consumer,
    event_id: &str,
) -> Result<(Transaction<'c, DB>, Mark), OnceError> {
    check_name("id", event_id)?;
    let mark = DB::mark(&mut tx, &consumer.name, event_id, consumer.keep).await?;
    Ok((tx, mark))
}

pub(crate) async fn act<'c, DB, W, F, T>(
    tx: Transaction<'c, DB>,
    (consumer, event_id): (&Consumer, &str),
    mark: Mark,
    work: W,
) -> Result<Seen<T>, OnceError>
where
    DB: Tables,
    W: FnOnce(Marked<'c, DB>) -> F,
    F: Future<Output = Result<(Marked<'c, DB>, T), Box<dyn StdError + Send + Sync>>>,
{
    if !mark.first {
        // What the caller wrote before belongs to the message too.
        tx.rollback().await.map_err(|error| OnceError::Database(DB::sorted(error)))?;
        return Ok(Seen::Again);
    }
    let (Marked(mut tx), made) = work(Marked(tx)).await.map_err(OnceError::Work)?;
    // PostgreSQL takes a COMMIT after a failed statement for a ROLLBACK, and says so to nobody that asks: an error that the
    // work has swallowed comes to light here. So does a mark that is gone, with the transaction that held it.
    if !DB::is_marked(&mut tx, &consumer.name, event_id).await? {
        return Err(OnceError::MarkLost);
    }
    let silent = |_| Err(sqlx::Error::Io(ErrorKind::TimedOut.into()));
    let committed = timeout(COMMIT, tx.commit()).await.unwrap_or_else(silent);
    committed.map_err(|error| OnceError::Unknown(DB::sorted(error)))?;
    Ok(Seen::First(made))
}

/// How long a commit may take, before nobody knows whether it was made.
const COMMIT: Duration = Duration::from_secs(10);

/// One batch of marks whose time is over; how many. A [`Relay`](crate::outbox::Relay) that runs does it by itself.
///
/// # Errors
/// [`StoreError`].
pub async fn clean_once<S: OutboxStore>(store: &S, limit: u32) -> Result<u64, StoreError> {
    store.clean_marks(limit).await
}

/// Why a message was not acted on. Deliver it again: in each case that gives the one effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// The message's id is none.
    #[error("it is no message that can be marked")]
    Invalid(#[from] InvalidEvent),
    /// The message cannot be marked: nothing was done.
    #[error("the message cannot be marked")]
    Database(#[from] Error),
    /// The work failed: rolled back, mark and all.
    #[error("the work of the message failed")]
    Work(#[source] Box<dyn StdError + Send + Sync>),
    /// The work rolled back the mark, or handed back another transaction: nothing of this one is kept.
    #[error("the mark is gone from the transaction that the work handed back")]
    MarkLost,
    /// The commit failed, and nobody knows whether it happened. The next delivery finds the mark, or acts.
    #[error("the commit failed; the next delivery finds out whether it happened")]
    Unknown(#[source] Error),
}

impl OnceError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(invalid) => invalid.code(),
            Self::Database(error) => error.code(),
            Self::Work(_) => "INBOX_WORK_FAILED",
            Self::MarkLost => "INBOX_MARK_LOST",
            Self::Unknown(_) => "INBOX_COMMIT_UNKNOWN",
        }
    }
}

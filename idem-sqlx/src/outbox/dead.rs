//! What a person does about events that do not go out: [`DeadLetters`].

use std::time::SystemTime;

use idem_core::StoreError;

use crate::outbox::relay::BATCH;
use crate::outbox::statements::ByHand;
use crate::outbox::{Event, OutboxStore};

/// An event that no relay tries any more: it was refused, failed too often, or does not read. It **holds up the later events of its
/// key** until a person puts it back or skips it: a consumer that missed `payment_paid` must not be told of the refund.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The event's id, by which it is put back or skipped.
    pub id: String,
    /// The event. `None`: its row does not read as one, [`last_error`](Self::last_error) says which column of it; put back,
    /// it is dead again.
    pub event: Option<Event>,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last try came to.
    pub last_error: String,
    /// When it was appended.
    pub appended_at: SystemTime,
}

/// The dead letters of a store. What is done about them leaves a row in `idempotency_audit`, in the same write.
///
/// ```
/// # async fn look(store: idem_sqlx::SqliteStore) -> Result<(), Box<dyn std::error::Error>> {
/// use idem_sqlx::outbox::DeadLetters;
///
/// let dead = DeadLetters::of(store);
/// for letter in dead.list(100).await? {
///     println!("{}: {}", letter.id, letter.last_error);
/// }
/// let refused = dead.redrive("payment_paid_1", "ada", "the broker's limit was raised").await.unwrap_err();
/// assert_eq!(refused.code(), "EVENT_NOT_DEAD");
/// # Ok(()) }
/// # let dir = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # look(idem_sqlx::SqliteStore::open(dir.path().join("idem.db")).await?).await })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DeadLetters<S> {
    store: S,
}

impl<S: OutboxStore> DeadLetters<S> {
    /// Those of `store`.
    pub fn of(store: S) -> Self {
        Self { store }
    }

    /// The oldest ones, up to `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(&self, limit: u32) -> Result<Vec<DeadLetter>, StoreError> {
        self.store.dead(limit).await
    }

    /// Has the event of this id tried again, with as many attempts as a new one.
    ///
    /// # Errors
    /// [`ByHandError`].
    pub async fn redrive(&self, id: &str, actor: &str, reason: &str) -> Result<(), ByHandError> {
        let by = explained(actor, reason)?;
        match self.store.redrive(id, &by).await? {
            false => Err(ByHandError::NotDead(id.to_owned())),
            true => Ok(()),
        }
    }

    /// Has all dead letters of a topic tried again, after an outage for instance; how many. It writes them batch by batch, so
    /// that thousands of them hold up nobody.
    ///
    /// # Errors
    /// [`ByHandError`]; the batches before it stand.
    pub async fn redrive_topic(&self, topic: &str, actor: &str, reason: &str) -> Result<u64, ByHandError> {
        let by = explained(actor, reason)?;
        let (mut sum, mut after) = (0, 0);
        loop {
            // Upwards only: one that dies again meanwhile is not put back twice.
            let redriven = self.store.redrive_topic(topic, after, BATCH, &by).await?;
            if redriven.count == 0 {
                return Ok(sum);
            }
            sum += redriven.count;
            after = redriven.last;
        }
    }

    /// Gives the event up: it is never published, and the later ones of its key go on **without it**. Tell its consumers
    /// first.
    ///
    /// # Errors
    /// [`ByHandError`].
    pub async fn skip(&self, id: &str, actor: &str, reason: &str) -> Result<(), ByHandError> {
        match self.store.skip(id, &explained(actor, reason)?).await? {
            false => Err(ByHandError::NotDead(id.to_owned())),
            true => Ok(()),
        }
    }
}

/// Whoever reads the audit later asks who and why.
fn explained(actor: &str, reason: &str) -> Result<ByHand, ByHandError> {
    for (name, text) in [("actor", actor), ("reason", reason)] {
        if text.trim().is_empty() {
            return Err(ByHandError::Unexplained(name));
        }
    }
    Ok(ByHand { actor: actor.to_owned(), reason: reason.to_owned() })
}

/// Why nothing was done about a dead letter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ByHandError {
    /// Whoever reads the audit later asks who and why.
    #[error("`{0}` must not be empty")]
    Unexplained(&'static str),
    /// There is no event of this id, or it waits, or it is out: no person is needed.
    #[error("no dead letter has the id `{0}`")]
    NotDead(String),
    /// The store.
    #[error("the dead letter cannot be changed")]
    Store(#[from] StoreError),
}

impl ByHandError {
    /// A stable name for logs and scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unexplained(_) => "EVENT_UNEXPLAINED",
            Self::NotDead(_) => "EVENT_NOT_DEAD",
            Self::Store(error) => error.code(),
        }
    }
}

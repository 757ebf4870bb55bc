//! Commands from a queue: what becomes of a message whose work [`Engine::run`](crate::Engine::run) was asked for.

use std::time::Duration;

use crate::engine::{Answer, Outcome};
use crate::store::StoreError;

/// What the queue is told.
///
/// The message's own id, or a business key in it, is the idempotency key: whatever a queue delivers twice or in a new
/// order then has one effect, and the second delivery gets what the first one got.
///
/// ```
/// use idem_core::consumer::Delivery;
/// use idem_core::{Engine, IdempotentCommand, MemoryStore, Reply, Tenant};
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "enter_in_ledger", version = 1)]
/// struct EnterInLedger { payment: String }
///
/// # futures_executor::block_on(async {
/// let engine = Engine::builder(MemoryStore::new()).build()?;
/// let (tenant, key) = (Tenant::new("ledger")?, "message-17".parse()?);
/// let command = EnterInLedger { payment: "pay_1".into() };
/// for _delivery in 0..3 {
///     let ran = engine.run(&tenant, &key, &command, |_| async { Ok(Reply::status(204)) }).await;
///     assert_eq!(Delivery::of(&ran), Delivery::Ack);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is done; the message may go.
    Ack,
    /// Nothing final is known: the same message again, not before that long. Not one of the deliveries that a queue
    /// counts against a message that fails.
    Later(Duration),
    /// The same message again brings nothing new. It is put aside for a person, with the reason.
    DeadLetter(DeadLetter),
}

/// Why a message is put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetter {
    /// The work refused it for good, with this status. A queue has no client who reads the refusal; a consumer that has
    /// published it acknowledges the message instead.
    Refused(u16),
    /// Its key belongs to another command: two messages share one key.
    Mismatch,
    /// Nobody knows how an earlier delivery ended, and only a person can find out. After the verdict the message is put
    /// back into the queue, and gets its answer or goes on.
    Unresolved,
    /// It came after the replay window: what it did then is known to the business rows alone.
    Expired,
    /// Its record was written by a contract that this build no longer keeps.
    ContractRetired,
    /// Its record cannot be read.
    RecordUnreadable,
}

impl DeadLetter {
    /// A stable name for the dead letter's headers, logs and alerts.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Refused(_) => "DEAD_REFUSED",
            Self::Mismatch => "DEAD_MISMATCH",
            Self::Unresolved => "DEAD_UNRESOLVED",
            Self::Expired => "DEAD_EXPIRED",
            Self::ContractRetired => "DEAD_CONTRACT_RETIRED",
            Self::RecordUnreadable => "DEAD_RECORD_UNREADABLE",
        }
    }
}

impl Delivery {
    /// What the queue is told of a message whose [`Engine::run`](crate::Engine::run) came to this.
    #[must_use]
    pub fn of(ran: &Result<Outcome, StoreError>) -> Self {
        match ran {
            Ok(Outcome::Done { reply, .. }) => Self::answered(reply.status),
            Ok(
                Outcome::Failed { retry_after, .. }
                | Outcome::Unknown { retry_after, .. }
                | Outcome::NotStored { retry_after },
            ) => Self::Later(*retry_after),
            Ok(Outcome::Second(answer)) => Self::of_second(answer),
            Err(StoreError::Unavailable(_)) => Self::Later(STORE_AWAY),
            // No message is to blame for a store that is set up wrongly: all of them wait for it.
            Err(StoreError::Unusable(_)) => Self::Later(STORE_UNUSABLE),
            Err(StoreError::Unreadable(_)) => Self::DeadLetter(DeadLetter::RecordUnreadable),
        }
    }

    fn of_second(answer: &Answer) -> Self {
        match answer {
            Answer::Replay { response, .. } | Answer::NotKept { response, .. } => Self::answered(response.status),
            Answer::InProgress { retry_after }
            | Answer::RetryLater { retry_after }
            | Answer::OutcomeUnknown { retry_after }
            | Answer::ContractUnknown { retry_after } => Self::Later(*retry_after),
            Answer::Mismatch(_) => Self::DeadLetter(DeadLetter::Mismatch),
            Answer::Unresolved { .. } => Self::DeadLetter(DeadLetter::Unresolved),
            Answer::Expired { .. } => Self::DeadLetter(DeadLetter::Expired),
            Answer::ContractRetired { .. } => Self::DeadLetter(DeadLetter::ContractRetired),
        }
    }

    /// A final answer: the first one, or the same again.
    fn answered(status: u16) -> Self {
        match status {
            0..400 => Self::Ack,
            refused => Self::DeadLetter(DeadLetter::Refused(refused)),
        }
    }
}

/// A database that is away is tried again by the time that a failover takes.
const STORE_AWAY: Duration = Duration::from_secs(5);

/// A deploy has to come first.
const STORE_UNUSABLE: Duration = Duration::from_secs(60);

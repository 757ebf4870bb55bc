//! A payment provider, with faults on request. It compares what it is sent under a key, forgets keys after its
//! retention, and can be asked, or not, by its [`Kind`]. To the service it is as far away as a real one.

mod books;
mod fault;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use books::Books;
pub use books::Made;
pub use fault::{Fault, Trouble};
use idem_core::{CallError, CommandHash, DownstreamKey, Fate};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// How long the provider that dedupes remembers a key, by its documentation.
pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// What a provider promises of a second request with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize)]
pub enum Kind {
    /// It makes no second charge within [`RETENTION`], and can be asked.
    #[default]
    Dedupes,
    /// It charges again, but can be asked what it has.
    QueryOnly,
    /// It charges again, and nobody can ask it.
    Neither,
}

/// The provider's side.
#[derive(Debug)]
pub struct Provider {
    books: Books,
    /// How long the service waits for an answer.
    time_out: Duration,
    next: Mutex<Option<Trouble>>,
    /// Whether questions get no answer.
    silent: watch::Sender<bool>,
    /// How many questions were answered.
    answered: watch::Sender<u64>,
}

/// One charge, as the service asks for it.
#[derive(Debug, Clone)]
pub struct Order {
    /// The key that makes a repeated request the same one.
    pub key: DownstreamKey,
    /// Whose money.
    pub account: String,
    /// How much.
    pub amount: Decimal,
    /// In what.
    pub currency: String,
    /// What the command means. The provider keeps it, so that whoever asks about the key can compare.
    pub command: CommandHash,
}

impl Order {
    fn amount(&self) -> String {
        self.amount.normalize().to_string()
    }

    fn currency(&self) -> String {
        self.currency.to_ascii_uppercase()
    }
}

/// What a charge came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Charge {
    /// The money moved.
    Approved {
        /// The provider's own id of it.
        receipt: String,
    },
    /// It did not, and will not.
    Declined {
        /// Why.
        reason: String,
    },
}

impl From<Made> for Charge {
    fn from(made: Made) -> Self {
        match made.declined {
            Some(reason) => Self::Declined { reason },
            None => Self::Approved { receipt: format!("ch_{:06}", made.id) },
        }
    }
}

/// Why a charge, or a question about one, has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No connection could be made.
    #[error("the provider cannot be reached")]
    Unreachable,
    /// It answered 503.
    #[error("the provider is not available")]
    Unavailable,
    /// It was asked, and did not answer.
    #[error("the provider's answer was lost")]
    NoAnswer,
    /// It was asked, and did not answer in time.
    #[error("the provider did not answer in time")]
    TimedOut,
    /// The key was used for another charge.
    #[error("the provider knows this key from another charge")]
    OtherCharge,
    /// Its own database failed.
    #[error("the provider is broken")]
    Broken(#[from] sqlx::Error),
}

impl CallError for ProviderError {
    fn fate(&self) -> Fate {
        match self {
            Self::Unreachable => Fate::NeverLeft,
            Self::Unavailable | Self::NoAnswer | Self::TimedOut | Self::OtherCharge | Self::Broken(_) => Fate::Unknown,
        }
    }
}

impl Provider {
    /// Opens the provider's file; the service waits `time_out` for an answer.
    ///
    /// # Errors
    /// The database's.
    pub async fn open(file: &Path, kind: Kind, time_out: Duration) -> Result<Self, sqlx::Error> {
        let retention = (kind == Kind::Dedupes).then_some(RETENTION);
        let (silent, answered) = (watch::Sender::new(kind == Kind::Neither), watch::Sender::new(0));
        Ok(Self { books: Books::open(file, retention).await?, time_out, next: Mutex::default(), silent, answered })
    }

    /// A charge to come meets this.
    pub fn prepare(&self, trouble: Trouble) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    /// Whether no charge has met yet what was prepared.
    pub fn is_prepared(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// From now on questions get an answer, or none.
    pub fn be_silent(&self, silent: bool) {
        self.silent.send_replace(silent);
    }

    /// Charges; where the provider dedupes, once for a key, however often it is asked.
    ///
    /// # Errors
    /// [`ProviderError`], which says what is known of the charge.
    pub async fn charge(self: &Arc<Self>, order: Order) -> Result<Charge, ProviderError> {
        let trouble = self.trouble();
        if trouble.fault == Some(Fault::Unreachable) {
            return Err(ProviderError::Unreachable);
        }
        // On a task of its own: that nobody waits any more does not keep a provider from charging.
        let provider = Arc::clone(self);
        let charging = tokio::spawn(async move { provider.answer(&order, &trouble).await });
        match tokio::time::timeout(self.time_out, charging).await {
            Ok(answer) => answer.unwrap_or(Err(ProviderError::NoAnswer)),
            Err(_) => Err(ProviderError::TimedOut),
        }
    }

    /// What it knows of a key; `None` where it was never asked for, or not yet.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub async fn find(&self, key: &DownstreamKey) -> Result<Option<Made>, ProviderError> {
        if *self.silent.borrow() {
            return Err(ProviderError::Unavailable);
        }
        let found = self.books.find(key.as_str()).await?;
        self.answered.send_modify(|answered| *answered += 1);
        Ok(found)
    }

    /// Everything it has charged.
    ///
    /// # Errors
    /// The database's.
    pub async fn charges(&self) -> Result<Vec<Made>, sqlx::Error> {
        self.books.charges().await
    }

    async fn answer(&self, order: &Order, trouble: &Trouble) -> Result<Charge, ProviderError> {
        let mut answered = self.answered.subscribe();
        tokio::time::sleep(trouble.delay()).await;
        match trouble.fault {
            Some(Fault::Unavailable) => return Err(ProviderError::Unavailable),
            Some(Fault::LostRequest) => return Err(ProviderError::NoAnswer),
            // An error would say that the provider is gone, and this is the provider.
            Some(Fault::Overtaken) => answered.changed().await.unwrap_or_default(),
            _ => {}
        }
        let declined = (trouble.fault == Some(Fault::Declined)).then_some("insufficient_funds");
        let made = self.books.book(order, declined).await?;
        match trouble.fault {
            Some(Fault::Crash) => std::process::abort(),
            Some(Fault::LostAnswer) => return Err(ProviderError::NoAnswer),
            Some(Fault::TimeOut) => tokio::time::sleep(2 * self.time_out).await,
            _ => {}
        }
        Ok(made.into())
    }

    /// What this charge meets.
    fn trouble(&self) -> Trouble {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *next {
            Some(trouble) if trouble.after > 0 => {
                trouble.after -= 1;
                Trouble::default()
            }
            next => next.take().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;

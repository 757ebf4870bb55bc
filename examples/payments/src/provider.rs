//! A payment provider in a file of its own: it dedupes by key for a day, compares what it is sent under a key, and has
//! delays and faults on request. To the service it is as far away as a real one.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use idem_core::{CallError, DownstreamKey, Fate};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqliteSynchronous};
use sqlx::{FromRow, Row};

use crate::payment::CreatePayment;

/// How long the provider remembers a key, by its documentation.
pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The provider's side.
#[derive(Debug)]
pub struct Provider {
    pool: SqlitePool,
    next: Mutex<Option<Trouble>>,
}

/// What the next charge meets, once.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// It takes that long.
    #[serde(default)]
    pub delay_ms: u64,
    /// It goes wrong.
    #[serde(default)]
    pub fault: Option<Fault>,
}

/// How a charge goes wrong.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection: nothing was charged, and the caller knows.
    Unreachable,
    /// It is charged, and the answer does not arrive.
    LostAnswer,
    /// The account's bank says no: a proper answer.
    Declined,
}

/// What a charge came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
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

/// A charge that the provider has made.
#[derive(Debug, Clone, Serialize, FromRow)]
pub struct Made {
    /// The key it was made under.
    pub key: String,
    /// Whose money.
    pub account: String,
    /// How much.
    pub amount: String,
    /// In what.
    pub currency: String,
    /// How often it was asked for; it was charged once.
    pub asked: i64,
}

/// Why a charge has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No connection could be made.
    #[error("the provider cannot be reached")]
    Unreachable,
    /// It was asked, and did not answer.
    #[error("the provider's answer was lost")]
    NoAnswer,
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
            Self::NoAnswer | Self::OtherCharge | Self::Broken(_) => Fate::Unknown,
        }
    }
}

impl Provider {
    /// Opens the provider's file.
    pub async fn open(file: &Path) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::query(
            "CREATE TABLE IF NOT EXISTS charges (key TEXT PRIMARY KEY, account TEXT NOT NULL, amount TEXT NOT NULL, \
             currency TEXT NOT NULL, declined TEXT, asked INTEGER NOT NULL DEFAULT 1) STRICT",
        )
        .execute(&pool)
        .await?;
        Ok(Self { pool, next: Mutex::default() })
    }

    /// The next charge meets this.
    pub fn prepare(&self, trouble: Trouble) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    /// Whether no charge has met yet what was prepared.
    pub fn is_prepared(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Charges once for a key, however often it is asked.
    pub async fn charge(&self, payment: &CreatePayment, key: DownstreamKey) -> Result<Charge, ProviderError> {
        let trouble = self.next.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        if let Some(Fault::Unreachable) = trouble.fault {
            return Err(ProviderError::Unreachable);
        }
        tokio::time::sleep(Duration::from_millis(trouble.delay_ms)).await;
        let declined = matches!(trouble.fault, Some(Fault::Declined)).then_some("insufficient_funds");
        let amount = payment.amount.normalize().to_string();
        let row = sqlx::query(
            "INSERT INTO charges (key, account, amount, currency, declined) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (key) DO UPDATE SET asked = asked + 1 RETURNING rowid, account, amount, currency, declined",
        )
        .bind(key.as_str())
        .bind(&payment.account_id)
        .bind(&amount)
        .bind(payment.currency.to_ascii_uppercase())
        .bind(declined)
        .fetch_one(&self.pool)
        .await?;
        let same = row.get::<&str, _>("account") == payment.account_id
            && row.get::<&str, _>("amount") == amount
            && row.get::<&str, _>("currency") == payment.currency.to_ascii_uppercase();
        if !same {
            return Err(ProviderError::OtherCharge);
        }
        if let Some(Fault::LostAnswer) = trouble.fault {
            return Err(ProviderError::NoAnswer);
        }
        Ok(match row.get::<Option<String>, _>("declined") {
            Some(reason) => Charge::Declined { reason },
            None => Charge::Approved { receipt: format!("ch_{:06}", row.get::<i64, _>("rowid")) },
        })
    }

    /// Everything it has charged.
    pub async fn charges(&self) -> Result<Vec<Made>, sqlx::Error> {
        sqlx::query_as(
            "SELECT key, account, amount, currency, asked FROM charges WHERE declined IS NULL ORDER BY rowid",
        )
        .fetch_all(&self.pool)
        .await
    }
}

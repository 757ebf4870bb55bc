//! What the provider has charged, in a file of its own.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqliteSynchronous};

use super::{Order, ProviderError};

/// Every charge, for ever. What is forgotten is only that a key was used: after that the key makes another charge.
#[derive(Debug)]
pub(super) struct Books {
    pool: SqlitePool,
    /// How long a key makes no second charge; `None`: every request makes one.
    retention: Option<Duration>,
}

/// A charge that was asked for.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
pub struct Made {
    /// The provider's own number of it.
    pub id: i64,
    /// The key it was made under.
    pub key: String,
    /// Whose money.
    pub account: String,
    /// How much.
    pub amount: String,
    /// In what.
    pub currency: String,
    /// What the command meant that it was made for, in the words of who sent it.
    pub command: String,
    /// Why it was declined; then no money moved.
    pub declined: Option<String>,
    /// How often it was asked for; it was charged once.
    pub asked: i64,
}

impl Made {
    fn is_for(&self, order: &Order) -> bool {
        self.account == order.account
            && self.amount == order.amount()
            && self.currency == order.currency()
            && self.command == order.command.to_string()
    }
}

impl Books {
    pub(super) async fn open(file: &Path, retention: Option<Duration>) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::query(
            "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, key TEXT NOT NULL, account TEXT NOT NULL, \
             amount TEXT NOT NULL, currency TEXT NOT NULL, command TEXT NOT NULL, declined TEXT, \
             asked INTEGER NOT NULL DEFAULT 1, made_at INTEGER NOT NULL) STRICT",
        )
        .execute(&pool)
        .await?;
        Ok(Self { pool, retention })
    }

    /// Books a charge, or finds the one that its key has made already.
    pub(super) async fn book(&self, order: &Order, declined: Option<&str>) -> Result<Made, ProviderError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let known: Option<Made> = match self.retention {
            Some(retention) => {
                let again = sqlx::query_as(
                    "UPDATE charges SET asked = asked + 1 WHERE id = \
                     (SELECT max(id) FROM charges WHERE key = ? AND made_at > ?) RETURNING *",
                );
                again
                    .bind(order.key.as_str())
                    .bind(millis(now.saturating_sub(retention)))
                    .fetch_optional(&mut *tx)
                    .await?
            }
            None => None,
        };
        let made = match known {
            Some(made) if !made.is_for(order) => return Err(ProviderError::OtherCharge),
            Some(made) => made,
            None => {
                sqlx::query_as(
                    "INSERT INTO charges (key, account, amount, currency, command, declined, made_at) \
                     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *",
                )
                .bind(order.key.as_str())
                .bind(&order.account)
                .bind(order.amount())
                .bind(order.currency())
                .bind(order.command.to_string())
                .bind(declined)
                .bind(millis(now))
                .fetch_one(&mut *tx)
                .await?
            }
        };
        tx.commit().await?;
        Ok(made)
    }

    /// The last charge under a key.
    pub(super) async fn find(&self, key: &str) -> Result<Option<Made>, sqlx::Error> {
        let found = sqlx::query_as("SELECT * FROM charges WHERE key = ? ORDER BY id DESC LIMIT 1");
        found.bind(key).fetch_optional(&self.pool).await
    }

    /// Every charge for which money moved.
    pub(super) async fn charges(&self) -> Result<Vec<Made>, sqlx::Error> {
        sqlx::query_as("SELECT * FROM charges WHERE declined IS NULL ORDER BY id").fetch_all(&self.pool).await
    }
}

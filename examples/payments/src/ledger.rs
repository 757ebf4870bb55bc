//! The service's own rows: what each payment is, by an id that every attempt derives alike.

use std::path::Path;
use std::time::Duration;

use idem_core::CommandHash;
use serde::Serialize;
use sqlx::FromRow;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};

use crate::payment::CreatePayment;
use crate::provider::Charge;

/// The payments of the service.
#[derive(Debug)]
pub struct Ledger {
    pool: SqlitePool,
}

/// A payment as its client sees it.
#[derive(Debug, Clone, Serialize, FromRow)]
pub struct Payment {
    /// `pay_` and 26 characters.
    pub id: String,
    /// Whose money.
    pub account_id: String,
    /// How much, with two decimals.
    pub amount: String,
    /// In what.
    pub currency: String,
    /// The merchant's own name for it.
    pub merchant_reference: String,
    /// `pending`, `paid` or `declined`.
    pub state: String,
    /// The provider's receipt, once it is paid.
    pub receipt: Option<String>,
}

/// Why the ledger did not do it.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A row of this id was written for another command: the key was used again after its record was gone.
    #[error("the payment {0} exists, for another command")]
    OtherCommand(String),
    /// The database.
    #[error("the ledger's database failed")]
    Database(#[from] sqlx::Error),
}

impl Ledger {
    /// Opens the ledger's file.
    pub async fn open(file: &Path) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::query(
            "CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, command_hash TEXT NOT NULL, merchant TEXT NOT NULL, \
             account_id TEXT NOT NULL, amount TEXT NOT NULL, currency TEXT NOT NULL, merchant_reference TEXT NOT NULL, \
             state TEXT NOT NULL, receipt TEXT) STRICT",
        )
        .execute(&pool)
        .await?;
        Ok(Self { pool })
    }

    /// Writes the payment down before money moves; an earlier attempt may have done so already.
    ///
    /// The hash in the row is what protects a key that is used again after its record is gone.
    pub async fn insert_or_resume(
        &self,
        id: &str,
        merchant: &str,
        hash: CommandHash,
        payment: &CreatePayment,
    ) -> Result<(), LedgerError> {
        let mut amount = payment.amount;
        amount.rescale(amount.scale().max(2));
        let written: String = sqlx::query_scalar(
            "INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', NULL) \
             ON CONFLICT (id) DO UPDATE SET id = id RETURNING command_hash",
        )
        .bind(id)
        .bind(hash.to_string())
        .bind(merchant)
        .bind(&payment.account_id)
        .bind(amount.to_string())
        .bind(payment.currency.to_ascii_uppercase())
        .bind(&payment.merchant_reference)
        .fetch_one(&self.pool)
        .await?;
        if written == hash.to_string() { Ok(()) } else { Err(LedgerError::OtherCommand(id.to_owned())) }
    }

    /// Writes down what the provider said; writing it twice is writing it once.
    pub async fn settle(&self, id: &str, charge: &Charge) -> Result<Payment, LedgerError> {
        let (state, receipt) = match charge {
            Charge::Approved { receipt } => ("paid", Some(receipt)),
            Charge::Declined { .. } => ("declined", None),
        };
        let settled = sqlx::query_as("UPDATE payments SET state = ?, receipt = ? WHERE id = ? RETURNING *");
        Ok(settled.bind(state).bind(receipt).bind(id).fetch_one(&self.pool).await?)
    }

    /// A merchant's payment.
    pub async fn find(&self, id: &str, merchant: &str) -> Result<Option<Payment>, LedgerError> {
        let found = sqlx::query_as("SELECT * FROM payments WHERE id = ? AND merchant = ?");
        Ok(found.bind(id).bind(merchant).fetch_optional(&self.pool).await?)
    }
}

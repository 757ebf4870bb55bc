//! The service's own rows: what each payment is, by an id that every attempt derives alike, and what was booked for it.
//! They stand in one file with idem's records, so that both are written in one transaction.

use std::path::Path;
use std::time::Duration;

use idem_core::CommandHash;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{FromRow, Sqlite, SqliteConnection, Transaction};

use crate::payment::CreatePayment;
use crate::provider::Charge;

/// The payments of the service, and its ledger.
#[derive(Debug)]
pub struct Ledger {
    pool: SqlitePool,
}

/// A payment as its client sees it.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
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
    /// What the ledger has booked for it: nothing until it is paid.
    pub booked: Option<String>,
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
    ///
    /// # Errors
    /// The database's.
    pub async fn open(file: &Path) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        Ok(Self { pool })
    }

    /// Its connections, for a store of idem beside it.
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Begins a transaction that writes.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.pool.begin_with("BEGIN IMMEDIATE").await
    }

    /// A merchant's payment.
    ///
    /// # Errors
    /// The database's.
    pub async fn find(&self, id: &str, merchant: &str) -> Result<Option<Payment>, sqlx::Error> {
        sqlx::query_as(FIND).bind(id).bind(merchant).fetch_optional(&self.pool).await
    }

    /// A merchant's last payments: where a client looks that lost an answer.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(&self, merchant: &str) -> Result<Vec<Payment>, sqlx::Error> {
        sqlx::query_as(LIST).bind(merchant).fetch_all(&self.pool).await
    }
}

/// Writes the payment down before money moves; an earlier attempt may have done so already.
///
/// The hash in the row is what protects a key that is used again after its record is gone.
///
/// # Errors
/// [`LedgerError`].
pub async fn insert_or_resume(
    tx: &mut SqliteConnection,
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
    .fetch_one(tx)
    .await?;
    if written == hash.to_string() { Ok(()) } else { Err(LedgerError::OtherCommand(id.to_owned())) }
}

/// Writes down what the provider said, and books what was paid; doing it twice is doing it once.
///
/// # Errors
/// The database's.
pub async fn settle(tx: &mut SqliteConnection, id: &str, charge: &Charge) -> Result<Payment, sqlx::Error> {
    let (state, receipt) = match charge {
        Charge::Approved { receipt } => ("paid", Some(receipt)),
        Charge::Declined { .. } => ("declined", None),
    };
    let settled = sqlx::query("UPDATE payments SET state = ?, receipt = ? WHERE id = ?");
    settled.bind(state).bind(receipt).bind(id).execute(&mut *tx).await?;
    sqlx::query(BOOK).bind(id).execute(&mut *tx).await?;
    sqlx::query_as(SETTLED).bind(id).fetch_one(tx).await
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS payments (
    id TEXT PRIMARY KEY, command_hash TEXT NOT NULL, merchant TEXT NOT NULL, account_id TEXT NOT NULL,
    amount TEXT NOT NULL, currency TEXT NOT NULL, merchant_reference TEXT NOT NULL, state TEXT NOT NULL, receipt TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS entries (
    payment_id TEXT PRIMARY KEY REFERENCES payments (id), amount TEXT NOT NULL, currency TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS payments_of_a_merchant ON payments (merchant);";

const BOOK: &str = "
INSERT INTO entries SELECT id, amount, currency FROM payments WHERE id = ? AND state = 'paid'
ON CONFLICT (payment_id) DO NOTHING";

const SETTLED: &str = "
SELECT p.*, e.amount AS booked FROM payments p LEFT JOIN entries e ON e.payment_id = p.id WHERE p.id = ?";

const FIND: &str = "
SELECT p.*, e.amount AS booked FROM payments p LEFT JOIN entries e ON e.payment_id = p.id
WHERE p.id = ? AND p.merchant = ?";

const LIST: &str = "
SELECT p.*, e.amount AS booked FROM payments p LEFT JOIN entries e ON e.payment_id = p.id
WHERE p.merchant = ? ORDER BY p.rowid DESC LIMIT 100";

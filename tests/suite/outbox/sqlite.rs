//! On SQLite.

use std::time::Duration;

use idem_core::StoreError;
use idem_core::store::Evidence;
use idem_sqlx::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, Transaction};

use super::webhooks::Learns;
use super::{Place, promises};

promises!(Beside<false>);

/// The schema as the next release leaves it: columns come, with a default or without.
mod expanded {
    use super::{Beside, promises};

    promises!(Beside<true>);
}

/// The application's pool, and idem's tables beside its own.
struct Beside<const EXPANDED: bool> {
    pool: SqlitePool,
    store: SqliteStore,
    _directory: tempfile::TempDir,
}

const NEXT: &str = "
ALTER TABLE idempotency_outbox ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_outbox ADD COLUMN now INTEGER;
ALTER TABLE idempotency_inbox ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_inbox ADD COLUMN state TEXT;
INSERT INTO idempotency_migrations (version, name, oldest, checksum) VALUES (1001, 'later', 1, X'00')";

impl<const EXPANDED: bool> Place for Beside<EXPANDED> {
    type Db = Sqlite;
    type Store = SqliteStore;

    const SCHEMA: &'static str = "";
    const PAST: &'static str = "0";
    const LOCK: &'static str = "";

    async fn fresh() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("app.db"))
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(60));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
        // A parent that is missing is noticed by the commit.
        let table = "CREATE TABLE rows (name TEXT PRIMARY KEY, parent TEXT REFERENCES rows (name)
            DEFERRABLE INITIALLY DEFERRED) STRICT";
        sqlx::raw_sql(table).execute(&pool).await.unwrap();
        if EXPANDED {
            SqliteStore::beside(&pool).await.unwrap().close().await;
            sqlx::raw_sql(NEXT).execute(&pool).await.unwrap();
        }
        let store = SqliteStore::beside(&pool).await.unwrap();
        Self { pool, store, _directory: directory }
    }

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn begin(&self) -> Transaction<'static, Sqlite> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
    }

    async fn insert(tx: &mut Transaction<'static, Sqlite>, row: &str) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT INTO rows (name) VALUES (?1)").bind(row).execute(&mut **tx).await?;
        Ok(())
    }

    async fn doom(tx: &mut Transaction<'static, Sqlite>) {
        sqlx::query("INSERT INTO rows (name, parent) VALUES ('orphan', 'nobody')").execute(&mut **tx).await.unwrap();
    }

    async fn run(&self, sql: String) {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&self.pool).await.unwrap();
    }

    async fn number(&self, sql: String) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    async fn texts(&self, sql: String) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&self.pool).await.unwrap()
    }
}

impl<const EXPANDED: bool> Learns for Beside<EXPANDED> {
    async fn evidence_in(
        &self,
        tx: &mut Transaction<'static, Sqlite>,
        evidence: &Evidence,
    ) -> Result<bool, StoreError> {
        self.store.evidence_in(tx, evidence).await
    }
}

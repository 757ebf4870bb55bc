//! Business rows and records in one SQLite file.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use idem_core::store::{Claiming, End, Fenced, Finish, Joins, Owning, Step, TxStore};
use idem_core::{Failure, Fence, Ownership, StatusName};
use idem_sqlx::{SqliteOptions, SqliteStore};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Row, Sqlite, SqlitePool, Transaction};

use super::{LONG, cause, inserts, new_claim};
use crate::stores::joining::{Rows, joining};

joining!(Beside);

/// The application's pool, and idem's tables beside its own.
struct Beside {
    pool: SqlitePool,
    store: SqliteStore,
    _directory: tempfile::TempDir,
}

impl Rows for Beside {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let (pool, directory) = application(SqliteSynchronous::Full).await;
        let store = SqliteStore::beside(&pool).await.unwrap();
        Self { pool, store, _directory: directory }
    }

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn begin(&self) -> Transaction<'static, Sqlite> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
    }

    async fn insert(&self, tx: &mut Transaction<'static, Sqlite>, row: &'static str) -> Result<(), Failure> {
        sqlx::query("INSERT INTO payments (name) VALUES (?1)").bind(row).execute(&mut **tx).await?;
        Ok(())
    }

    async fn doom(tx: &mut Transaction<'static, Sqlite>) -> bool {
        sqlx::query("INSERT INTO payments (name, parent) VALUES ('orphan', 'nobody')")
            .execute(&mut **tx)
            .await
            .unwrap();
        true
    }

    async fn rows(&self) -> Vec<String> {
        let rows = sqlx::query("SELECT name FROM payments ORDER BY name").fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// An application's database, with two connections.
async fn application(synchronous: SqliteSynchronous) -> (SqlitePool, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("app.db"))
        .create_if_missing(true)
        .synchronous(synchronous);
    let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    // A parent that is missing is noticed by the commit.
    let table = "CREATE TABLE payments (name TEXT PRIMARY KEY, parent TEXT REFERENCES payments (name)
        DEFERRABLE INITIALLY DEFERRED) STRICT";
    sqlx::raw_sql(table).execute(&pool).await.unwrap();
    (pool, directory)
}

async fn owner(store: &SqliteStore) -> Ownership {
    let claim = new_claim("key-1", LONG);
    assert!(inserts(store, &claim).await);
    Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner }
}

fn a_step() -> Step {
    Step { closed: Vec::new(), open: None, resource: None, checkpoint: None, lease: LONG }
}

/// Without a pool of the application's, work gets a connection of the store's.
#[tokio::test]
async fn a_store_of_its_own_begins_transactions_too() {
    let (store, _directory) = super::temporary().await;
    let owner = owner(&store).await;
    let mut tx = store.begin().await.unwrap();
    tx.step(&store, &owner, &a_step()).await.unwrap();
    Joins::commit(tx).await.unwrap();
    assert_eq!(store.record(&owner.scope).await.unwrap().unwrap().revision.get(), 2);
}

/// What a power loss could take back announces nothing.
#[tokio::test]
async fn a_connection_that_forgets_is_refused() {
    let (pool, _directory) = application(SqliteSynchronous::Normal).await;
    let store = SqliteStore::beside(&pool).await.unwrap();
    let owner = owner(&store).await;
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = tx.step(&store, &owner, &a_step()).await.unwrap_err();
    assert_eq!((cause(&error), error.is_transient()), ("DATABASE_NOT_DURABLE", false));
}

/// A transaction that read, and then writes after somebody else wrote, is to be run again; no time-out helps it.
#[tokio::test]
async fn a_transaction_that_read_too_early_may_be_run_again() {
    let rows = Beside::fresh().await;
    let owner = owner(&rows.store).await;
    let mut tx = rows.pool.begin().await.unwrap();
    sqlx::query("SELECT name FROM payments").fetch_all(&mut *tx).await.unwrap();
    assert!(inserts(&rows.store, &new_claim("key-2", LONG)).await);
    let error = tx.step(&rows.store, &owner, &a_step()).await.unwrap_err();
    assert_eq!((cause(&error), error.is_transient()), ("DATABASE_CONFLICT", true));
    drop(tx);
    let mut tx = rows.begin().await;
    tx.step(&rows.store, &owner, &a_step()).await.unwrap();
    Joins::commit(tx).await.unwrap();
}

/// Claims wait for a transaction that is held, and go on when it ends.
#[tokio::test]
async fn claims_wait_for_a_transaction() {
    let rows = Beside::fresh().await;
    let mut tx = rows.begin().await;
    rows.insert(&mut tx, "paid").await.unwrap();
    let claim = new_claim("key-1", LONG);
    let mut inserting = pin!(inserts(&rows.store, &claim));
    let early = tokio::time::timeout(Duration::from_millis(100), inserting.as_mut()).await;
    assert!(early.is_err(), "it did not wait");
    tx.rollback().await.unwrap();
    assert!(inserting.await);
}

/// A `begin` that is dropped at any moment leaves its connection outside of a transaction.
#[tokio::test]
async fn a_begin_that_is_dropped_holds_no_lock() {
    let rows = Beside::fresh().await;
    for turn in 0..100 {
        drop(tokio::time::timeout(Duration::from_micros(turn * 5), rows.store.begin()).await);
        let claim = new_claim(&format!("key-{turn}"), LONG);
        assert!(inserts(&rows.store, &claim).await);
        let mut tx = rows.store.begin().await.unwrap();
        let owner = Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner };
        tx.step(&rows.store, &owner, &a_step()).await.unwrap();
        Joins::commit(tx).await.unwrap();
        let found = rows.store.look(&claim.scope).await.unwrap().unwrap();
        assert_eq!((found.record.revision.get(), found.record.status.name()), (2, StatusName::InProgress));
    }
}

/// A connection that went back to the application's pool inside a transaction: the next insert on it reports its row and
/// is never committed. It may hold the file's lock, and then nobody claims; what is claimed is on the disk; and no work
/// begins in what was left open. (A `begin` that is dropped before its answer was read leaves none behind: sqlx takes it
/// back on SQLite. A plain BEGIN does.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poisoned_pool_does_not_reach_a_claim() {
    let (application, _directory) = application(SqliteSynchronous::Full).await;
    let pool = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect_with((*application.connect_options()).clone()).await.unwrap();
    let options = SqliteOptions::beside(&pool).busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::open(options).await.unwrap();
    for turn in 0..20 {
        let poisons = turn % 2 == 1;
        if poisons {
            sqlx::raw_sql("BEGIN").execute(&pool).await.unwrap();
        } else {
            let mut begin = Box::pin(pool.begin());
            let begun = (&mut begin).now_or_never();
            // The answer is there, and nobody reads it.
            std::thread::sleep(Duration::from_millis(5));
            drop((begin, begun));
        }
        let name = format!("paid-{turn}");
        let inserted = sqlx::query("INSERT INTO payments (name) VALUES (?1)").bind(&name).execute(&pool).await.unwrap();
        assert_eq!(inserted.rows_affected(), 1);
        let there = sqlx::query("SELECT 1 FROM payments WHERE name = ?1").bind(&name);
        assert_eq!(there.fetch_optional(&application).await.unwrap().is_none(), poisons);
        let claim = new_claim(&format!("key-{turn}"), LONG);
        if poisons {
            let error = store.claim(&claim).await.unwrap_err();
            assert_eq!((cause(&error), error.is_transient()), ("DATABASE_LOCKED", true));
            assert!(store.begin().await.is_err(), "work began in a transaction that was left open");
            assert_eq!(store.record(&claim.scope).await.unwrap(), None);
            pool.acquire().await.unwrap().close().await.unwrap();
        }
        assert!(inserts(&store, &claim).await);
        let there = sqlx::query("SELECT 1 FROM idempotency_requests WHERE idempotency_key = ?1");
        assert!(there.bind(format!("key-{turn}")).fetch_optional(&application).await.unwrap().is_some());
    }
}

/// Handlers that hold all connections of the application's pool do not keep their own outcomes from being stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pool_that_handlers_hold_starves_nobody() {
    let (pool, _directory) = application(SqliteSynchronous::Full).await;
    assert_eq!(pool.options().get_max_connections(), 2);
    let store = SqliteStore::beside(&pool).await.unwrap();
    let handlers = (0..20).map(|request| {
        let (pool, store) = (pool.clone(), store.clone());
        tokio::spawn(async move {
            let claim = new_claim(&format!("key-{request}"), LONG);
            let mut business = pool.begin().await.unwrap();
            sqlx::query("SELECT count(*) FROM payments").fetch_one(&mut *business).await.unwrap();
            assert!(inserts(&store, &claim).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
            let finish = Finish { closed: Vec::new(), resource: None, end: End::Unknown { ask_in: LONG } };
            let finished = store.finish(&owner, &finish).await.unwrap();
            business.commit().await.unwrap();
            matches!(finished, Fenced::Written { .. })
        })
    });
    for finished in join_all(handlers.collect::<Vec<_>>()).await {
        assert!(finished.unwrap());
    }
}

/// A pool over a database in memory has no file to stand beside.
#[tokio::test]
async fn a_pool_in_memory_is_refused() {
    for url in ["sqlite::memory:", "sqlite://"] {
        let pool = SqlitePoolOptions::new().connect_lazy(url).unwrap();
        assert_eq!(SqliteStore::beside(&pool).await.unwrap_err().code(), "DATABASE_IN_MEMORY", "{url}");
    }
}

/// By another name it is the same file.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_file_is_the_file() {
    let (store, directory) = super::temporary().await;
    let owner = owner(&store).await;
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    let options = SqliteConnectOptions::new().filename(link.join("idem.db")).disable_statement_logging();
    let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    tx.step(&store, &owner, &a_step()).await.unwrap();
}

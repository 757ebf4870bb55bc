//! Where records and business rows are: one database, made anew for each test.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{Joins, TxStore};
use idem_sqlx::{PgOptions, PgStore, SqliteStore};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Where a database is, for another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Address {
    Sqlite(PathBuf),
    Postgres { port: u16, user: String, database: String },
}

/// A store, and beside it the rows of an application: `paid (id)`, without any constraint that would hide a second one.
#[async_trait]
pub(crate) trait Home: Send + Sync + Sized + 'static {
    type Store: TxStore<Tx = Self::Tx> + Clone + 'static;
    type Tx: Joins<Self::Store> + Books;

    async fn open(address: &Address) -> Result<Self, Failed>;

    fn store(&self) -> &Self::Store;

    /// How often it was booked.
    async fn booked(&self, id: &str) -> Result<i64, sqlx::Error>;

    /// Whether the database itself came through it.
    async fn is_sound(&self) -> Result<bool, sqlx::Error>;
}

/// A transaction that payments are booked in, together with the completion of their records.
#[async_trait]
pub(crate) trait Books: Send + 'static {
    async fn book(&mut self, id: &str) -> Result<(), sqlx::Error>;
}

#[async_trait]
impl Books for sqlx::Transaction<'static, sqlx::Sqlite> {
    async fn book(&mut self, id: &str) -> Result<(), sqlx::Error> {
        sqlx::query(BOOK).bind(id).execute(&mut **self).await.map(drop)
    }
}

#[async_trait]
impl Books for sqlx::Transaction<'static, sqlx::Postgres> {
    async fn book(&mut self, id: &str) -> Result<(), sqlx::Error> {
        sqlx::query(BOOK).bind(id).execute(&mut **self).await.map(drop)
    }
}

pub(crate) struct Sqlite {
    store: SqliteStore,
    pool: SqlitePool,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS paid (id TEXT NOT NULL)";
const BOOK: &str = "INSERT INTO paid (id) VALUES ($1)";
const BOOKED: &str = "SELECT count(*) FROM paid WHERE id = $1";

#[async_trait]
impl Home for Sqlite {
    type Store = SqliteStore;
    type Tx = sqlx::Transaction<'static, sqlx::Sqlite>;

    async fn open(address: &Address) -> Result<Self, Failed> {
        let Address::Sqlite(file) = address else { return Err("not a file".into()) };
        let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
        let pool = SqlitePool::connect_with(options.busy_timeout(Duration::from_secs(30))).await?;
        let store = SqliteStore::beside(&pool).await?;
        sqlx::query(TABLE).execute(&pool).await?;
        Ok(Self { store, pool })
    }

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn booked(&self, id: &str) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(BOOKED).bind(id).fetch_one(&self.pool).await
    }

    async fn is_sound(&self) -> Result<bool, sqlx::Error> {
        let said: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&self.pool).await?;
        Ok(said == "ok")
    }
}

pub(crate) struct Postgres {
    store: PgStore,
    pool: PgPool,
}

#[async_trait]
impl Home for Postgres {
    type Store = PgStore;
    type Tx = sqlx::Transaction<'static, sqlx::Postgres>;

    async fn open(address: &Address) -> Result<Self, Failed> {
        let Address::Postgres { port, user, database } = address else { return Err("not a server".into()) };
        let options = PgConnectOptions::new().host("127.0.0.1").port(*port).username(user).database(database);
        let pool = PgPool::connect_with(options).await?;
        let brief = Duration::from_secs(1);
        let options = PgOptions::from(&pool).statement_timeout(brief).idle_transaction_timeout(brief);
        let store = PgStore::open(options).await?;
        sqlx::query(TABLE).execute(&pool).await?;
        Ok(Self { store, pool })
    }

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn booked(&self, id: &str) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(BOOKED).bind(id).fetch_one(&self.pool).await
    }

    /// The server has lost nobody.
    async fn is_sound(&self) -> Result<bool, sqlx::Error> {
        Ok(true)
    }
}

impl Address {
    pub(crate) fn file(folder: &Path) -> Self {
        Self::Sqlite(folder.join("records.sqlite"))
    }

    pub(crate) fn database(database: &idem_cluster::Database) -> Self {
        let options = database.options();
        Self::Postgres {
            port: options.get_port(),
            user: options.get_username().to_owned(),
            database: database.name().to_owned(),
        }
    }
}

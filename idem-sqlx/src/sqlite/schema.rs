//! The schema, step by step: applied, checked, and printed.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

use crate::error::Error;
use crate::migration::{self, Applied, Migration, SchemaVersion};
use crate::sqlite::options::SqliteOptions;

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "records", oldest: 1, sql: include_str!("../../migrations/sqlite/0001_records.sql") },
    // New tables only: the release before does not look at them.
    Migration { version: 2, name: "events", oldest: 1, sql: include_str!("../../migrations/sqlite/0002_events.sql") },
];

/// A table of idem's own: the application's migrations are not its business, nor sqlx's table of them.
const TABLE: &str = "\
CREATE TABLE IF NOT EXISTS idempotency_migrations (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    oldest     INTEGER NOT NULL,
    checksum   BLOB    NOT NULL,
    applied_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
) STRICT;
";

/// The schema as plain SQL, for teams that migrate with a tool of their own. It also writes down that it was applied,
/// so that the store accepts it.
pub(super) fn plain_sql() -> String {
    let mut sql = TABLE.to_owned();
    for migration in MIGRATIONS {
        let checksum = migration.checksum_hex();
        let Migration { version, name, oldest, sql: step } = migration;
        let _infallible = write!(
            sql,
            "\n{step}\nINSERT INTO idempotency_migrations (version, name, oldest, checksum) VALUES ({version}, '{name}', {oldest}, X'{checksum}');\n"
        );
    }
    sql
}

/// Opens the file, which must be there unless `create`, and sees to the write-ahead log.
pub(super) async fn connect(options: &SqliteOptions, file: &Path, create: bool) -> Result<SqliteConnection, Error> {
    let connect = options.writing(file).create_if_missing(create);
    let mut connection = open(&connect, file).await?;
    let give_up_at = Instant::now() + options.patience();
    loop {
        // The mode stays with the file. To change it needs a lock for which SQLite itself does not wait.
        match sqlx::query("PRAGMA journal_mode = WAL").fetch_one(&mut connection).await {
            Ok(row) => {
                let mode: String = row.try_get(0).map_err(Error::of_sqlite)?;
                if mode == "wal" {
                    return Ok(connection);
                }
                return Err(Error::NotWal { path: file.to_owned(), mode });
            }
            Err(error) => match Error::of_sqlite(error) {
                Error::Locked(_) if Instant::now() < give_up_at => tokio::time::sleep(RETRY).await,
                error => return Err(error),
            },
        }
    }
}

async fn open(connect: &SqliteConnectOptions, file: &Path) -> Result<SqliteConnection, Error> {
    connect.connect().await.map_err(|source| {
        let error = Error::of_sqlite(source);
        match error {
            // At the start, a file that cannot be opened is a wrong path or a missing right, not a passing fault.
            Error::Failed(source) => Error::NotOpenable { path: file.to_owned(), source },
            error => error,
        }
    })
}

/// Applies what is missing, all of it or nothing. Two processes that start at once wait for each other.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(Error::of_sqlite)?;
    sqlx::raw_sql(TABLE).execute(&mut *tx).await.map_err(Error::of_sqlite)?;
    let applied = applied(&mut tx).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > applied) {
        sqlx::raw_sql(migration.sql).execute(&mut *tx).await.map_err(Error::of_sqlite)?;
        sqlx::query("INSERT INTO idempotency_migrations (version, name, oldest, checksum) VALUES (?1, ?2, ?3, ?4)")
            .bind(migration.version)
            .bind(migration.name)
            .bind(migration.oldest)
            .bind(migration.checksum())
            .execute(&mut *tx)
            .await
            .map_err(Error::of_sqlite)?;
    }
    tx.commit().await.map_err(Error::of_sqlite)
}

/// How far the schema has come.
pub(super) async fn version(connection: &mut SqliteConnection) -> Result<SchemaVersion, Error> {
    match applied(connection).await {
        Err(Error::NotMigrated(_)) => Ok(SchemaVersion::of(MIGRATIONS, 0)),
        applied => Ok(SchemaVersion::of(MIGRATIONS, applied?)),
    }
}

/// Refuses a schema that this release cannot work with.
pub(super) async fn check(connection: &mut SqliteConnection) -> Result<(), Error> {
    migration::complete(MIGRATIONS, applied(connection).await?)
}

/// Refuses a file that cannot be written, before it takes traffic: SQLite opens one read-only without a word.
pub(super) async fn probe(connection: &mut SqliteConnection) -> Result<(), Error> {
    let tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(Error::of_sqlite)?;
    tx.rollback().await.map_err(Error::of_sqlite)
}

/// The newest applied version; 0 for none.
async fn applied(connection: &mut SqliteConnection) -> Result<i64, Error> {
    let rows = sqlx::query("SELECT version, oldest, checksum FROM idempotency_migrations ORDER BY version")
        .fetch_all(connection)
        .await
        .map_err(Error::of_sqlite)?;
    let mut applied = Vec::new();
    for row in rows {
        applied.push(Applied {
            version: row.try_get(0).map_err(Error::of_sqlite)?,
            oldest: row.try_get(1).map_err(Error::of_sqlite)?,
            checksum: row.try_get(2).map_err(Error::of_sqlite)?,
        });
    }
    migration::newest(MIGRATIONS, applied)
}

const RETRY: Duration = Duration::from_millis(5);

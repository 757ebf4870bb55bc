//! The schema, step by step: applied, checked, and printed.

use std::fmt::Write as _;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::types::Uuid;
use sqlx::{ConnectOptions, Connection, PgConnection, Row};

use crate::error::Error;
use crate::migration::{self, Applied, Migration, SchemaVersion};
use crate::postgres::options::PgOptions;

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "records",
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0001_records.sql"),
    },
    // New tables only: the release before does not look at them.
    Migration { version: 2, name: "events", oldest: 1, sql: include_str!("../../migrations/postgres/0002_events.sql") },
];

/// A schema and a table of idem's own: the application's migrations are not its business, nor sqlx's table of them.
const TABLE: &str = "\
CREATE SCHEMA IF NOT EXISTS idem;
CREATE TABLE IF NOT EXISTS idem.idempotency_migrations (
    version    bigint      NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    oldest     bigint      NOT NULL,
    checksum   bytea       NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
";

/// The schema as plain SQL, for teams that migrate with a tool of their own. It also writes down that it was applied,
/// so that the store accepts it.
pub(super) fn plain_sql() -> String {
    let mut sql = TABLE.to_owned();
    for migration in MIGRATIONS {
        let Migration { version, name, oldest, sql: step } = migration;
        let checksum = migration.checksum_hex();
        let _infallible = write!(
            sql,
            "\n{step}\nINSERT INTO idem.idempotency_migrations (version, name, oldest, checksum) VALUES ({version}, '{name}', {oldest}, '\\x{checksum}');\n"
        );
    }
    sql
}

/// A connection for the start.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    options.connect().await.map_err(|error| match Error::of_postgres(error) {
        // At the start, whatever keeps a connection from coming about is an address, a password or a server that is down.
        Error::Failed(source) | Error::Refused(source) => Error::NotReachable(source),
        error => error,
    })
}

/// Applies what is missing, all of it or nothing. Nodes that start at once wait for each other.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        match migrate_once(connection).await {
            // Two nodes that make the same schema at once: the second one is refused, and finds it made.
            Err(Error::Refused(error)) if is_made_twice(&error) && tries < TRIES => {}
            Err(Error::Serialization(_) | Error::Locked(_)) if tries < TRIES => {}
            done => return done,
        }
        tries += 1;
        tokio::time::sleep(PAUSE * tries).await;
    }
}

async fn migrate_once(connection: &mut PgConnection) -> Result<(), Error> {
    let mut tx = connection.begin().await.map_err(Error::of_postgres)?;
    // The owner of the schema may be somebody else, who has migrated: then nothing is to be made.
    if newest(&mut tx).await? < NEWEST {
        sqlx::raw_sql(TABLE).execute(&mut *tx).await.map_err(Error::of_postgres)?;
        sqlx::raw_sql("LOCK TABLE idem.idempotency_migrations IN EXCLUSIVE MODE")
            .execute(&mut *tx)
            .await
            .map_err(Error::of_postgres)?;
        let applied = newest(&mut tx).await?;
        for migration in MIGRATIONS.iter().filter(|migration| migration.version > applied) {
            sqlx::raw_sql(migration.sql).execute(&mut *tx).await.map_err(Error::of_postgres)?;
            sqlx::query(APPLIED)
                .persistent(false)
                .bind(migration.version)
                .bind(migration.name)
                .bind(migration.oldest)
                .bind(migration.checksum())
                .execute(&mut *tx)
                .await
                .map_err(Error::of_postgres)?;
        }
    }
    tx.commit().await.map_err(Error::of_postgres)
}

/// unique_violation in the catalogue, duplicate_schema, duplicate_table, duplicate_object, tuple concurrently updated.
fn is_made_twice(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["23505", "42P06", "42P07", "42710", "XX000"].contains(&&*code))
}

/// How far the schema has come.
pub(super) async fn version(connection: &mut PgConnection) -> Result<SchemaVersion, Error> {
    let mut tx = connection.begin().await.map_err(Error::of_postgres)?;
    let version = SchemaVersion::of(MIGRATIONS, newest(&mut tx).await?);
    tx.commit().await.map_err(Error::of_postgres)?;
    Ok(version)
}

/// Refuses a server or a schema that this release cannot work with; gives the database's own name.
pub(super) async fn check(connection: &mut PgConnection, options: &PgOptions) -> Result<Uuid, Error> {
    let mut tx = connection.begin().await.map_err(Error::of_postgres)?;
    let server = sqlx::query(SERVER).persistent(false).fetch_one(&mut *tx).await.map_err(Error::of_postgres)?;
    if server.try_get::<bool, _>(0).map_err(Error::of_postgres)? {
        return Err(Error::Replica(None));
    }
    if server.try_get::<bool, _>(1).map_err(Error::of_postgres)? && !options.may_forget {
        return Err(Error::CommitsAsynchronously);
    }
    migration::complete(MIGRATIONS, newest(&mut tx).await?)?;
    let id = sqlx::query("SELECT id FROM idem.idempotency_store").persistent(false);
    let id = id.fetch_one(&mut *tx).await.map_err(Error::of_postgres)?;
    tx.commit().await.map_err(Error::of_postgres)?;
    id.try_get(0).map_err(Error::of_postgres)
}

/// Whether the server only reads.
pub(super) async fn is_replica(connection: &mut PgConnection) -> Result<bool, Error> {
    let mut tx = connection.begin().await.map_err(Error::of_postgres)?;
    let server = sqlx::query(SERVER).persistent(false).fetch_one(&mut *tx).await.map_err(Error::of_postgres)?;
    tx.commit().await.map_err(Error::of_postgres)?;
    server.try_get(0).map_err(Error::of_postgres)
}

/// The newest applied version; 0 for none.
async fn newest(tx: &mut PgConnection) -> Result<i64, Error> {
    let there = sqlx::query("SELECT to_regclass('idem.idempotency_migrations') IS NOT NULL");
    let there = there.persistent(false).fetch_one(&mut *tx).await.map_err(Error::of_postgres)?;
    if !there.try_get::<bool, _>(0).map_err(Error::of_postgres)? {
        return Ok(0);
    }
    let rows = sqlx::query("SELECT version, oldest, checksum FROM idem.idempotency_migrations ORDER BY version");
    let rows = rows.persistent(false).fetch_all(tx).await.map_err(Error::of_postgres)?;
    let mut applied = Vec::new();
    for row in rows {
        applied.push(Applied {
            version: row.try_get(0).map_err(Error::of_postgres)?,
            oldest: row.try_get(1).map_err(Error::of_postgres)?,
            checksum: row.try_get(2).map_err(Error::of_postgres)?,
        });
    }
    migration::newest(MIGRATIONS, applied)
}

const SERVER: &str = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
    current_setting('synchronous_commit') = 'off'";

const APPLIED: &str =
    "INSERT INTO idem.idempotency_migrations (version, name, oldest, checksum) VALUES ($1, $2, $3, $4)";

const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const TRIES: u32 = 20;

const PAUSE: Duration = Duration::from_millis(20);

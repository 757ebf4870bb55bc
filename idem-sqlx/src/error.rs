//! Why a database cannot be used, or not now: [`Error`], and what it is to the engine.

use std::path::PathBuf;

use idem_core::StoreError;

/// What is wrong with the database, and what helps. It is the result of opening a store, and the source of the
/// [`StoreError`]s of an open one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A database in memory: each connection of a pool would have its own, and it ends with them.
    #[error(
        "`{0}` is a database in memory, which forgets claims; for tests use idem_core::MemoryStore, otherwise name a file"
    )]
    InMemory(String),
    /// The URL asks for something that the store does not do.
    #[error("`{url}` does not name an SQLite file: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file, its directory is missing, or this process may not read and write it.
    #[error("the SQLite file {} cannot be opened", path.display())]
    NotOpenable {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: sqlx::Error,
    },
    /// The file cannot be used with a write-ahead log (a network file system, for instance).
    #[error("the SQLite file {} does not take the journal mode `wal`, it stays at `{mode}`; is it on a local disk?", path.display())]
    NotWal {
        /// The file.
        path: PathBuf,
        /// The mode it has.
        mode: String,
    },
    /// idem's tables are missing.
    #[error("idem's tables are missing: use the store's `open` or `migrate`, or run the SQL of its `schema_sql()`")]
    NotMigrated(#[source] Option<sqlx::Error>),
    /// The schema is older than this release needs.
    #[error("idem's schema is at version {found}, this release needs {needed}: migrate before it takes traffic")]
    SchemaTooOld {
        /// The newest migration that was applied.
        found: i64,
        /// The newest that this release knows.
        needed: i64,
    },
    /// A newer release has changed the schema in a way that this one cannot work with.
    #[error(
        "idem's schema is at version {found}, which releases before version {oldest} cannot use; this one knows {known}"
    )]
    SchemaTooNew {
        /// The newest migration that was applied.
        found: i64,
        /// The oldest schema version that a release must know to work with it.
        oldest: i64,
        /// The newest that this release knows.
        known: i64,
    },
    /// A migration was applied with another text than this release has.
    #[error("migration {version} was applied to this database with another text than this release has")]
    SchemaEdited {
        /// The migration.
        version: i64,
    },
    /// Somebody else wrote for longer than the busy time-out.
    #[error("the database was locked for longer than the busy time-out")]
    Locked(#[source] sqlx::Error),
    /// Somebody else wrote since this transaction read. The whole transaction may be run again; begun with
    /// `BEGIN IMMEDIATE` it does not happen.
    #[error("another connection wrote since this transaction read: begin it with `BEGIN IMMEDIATE`")]
    Conflict(#[source] sqlx::Error),
    /// A connection of the application's may forget at a power loss what it committed, an announced call for instance.
    #[error(
        "the transaction's connection has `synchronous = {0}`: a power loss could forget an announced call; open the pool with `synchronous = FULL`"
    )]
    NotDurable(i64),
    /// So many writes were waiting that this one did not have its turn within twice the busy time-out.
    #[error("the write did not have its turn within twice the busy time-out")]
    Busy,
    /// Whenever the record was in the way it was gone when it was looked for. Nobody owns it by that.
    #[error("the record came and went while it was looked for")]
    Contended,
    /// The file was deleted or replaced under this process. What it wrote from here on would be lost, or would make a
    /// second owner beside that of a process with the new file: it has to be started again.
    #[error("the SQLite file {} was deleted or replaced while it was open: start this process again", .0.display())]
    Replaced(PathBuf),
    /// The disk is full.
    #[error("the disk is full")]
    Full(#[source] sqlx::Error),
    /// The disk, the operating system or a connection failed; it may be over soon.
    #[error("the database failed")]
    Failed(#[source] sqlx::Error),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The file may not be written.
    #[error("the database is read-only")]
    ReadOnly(#[source] sqlx::Error),
    /// The file is damaged, or no SQLite database.
    #[error("the database is damaged, or no SQLite database")]
    Damaged(#[source] sqlx::Error),
    /// The database refused a statement: another program changed the tables, or this is a fault of idem.
    #[error("the database refused a statement")]
    Refused(#[source] sqlx::Error),
    /// The PostgreSQL URL does not read, or the server is not to be reached, or refuses the user.
    #[error("there is no connection to the PostgreSQL server")]
    NotReachable(#[source] sqlx::Error),
    /// No encrypted connection: the server does not speak TLS, its certificate is not trusted or names another host, or
    /// this program was built without TLS.
    #[error(
        "no TLS with the PostgreSQL server: look at the server's `ssl`, at `sslmode` and `sslrootcert` of the URL, and at \
         the features `tls-rustls` and `tls-rustls-native-roots`"
    )]
    Tls(#[source] sqlx::Error),
    /// The server is a standby, or the session may only read: nothing can be claimed there.
    #[error("the PostgreSQL server is a read-only replica, or its sessions are read-only: connect to the primary")]
    Replica(#[source] Option<sqlx::Error>),
    /// A commit is acknowledged before it is on the disk: a crash of the server forgets claims whose work has run.
    #[error(
        "`synchronous_commit` is off: a crash forgets claims whose work has run. Turn it on for idem's role, or say \
         `PgOptions::claims_may_be_forgotten`"
    )]
    CommitsAsynchronously,
    /// A statement ran for longer than `statement_timeout`, or was cancelled by an administrator.
    #[error("the statement ran for longer than its time-out")]
    TooSlow(#[source] sqlx::Error),
    /// PostgreSQL gave this transaction up for another one (a serialization failure or a deadlock), or the transaction's
    /// isolation keeps it from seeing how the record stands: the whole transaction may be run again.
    #[error("the transaction met a rival's, or cannot see it: run it again; READ COMMITTED does not meet this")]
    Serialization(#[source] Option<sqlx::Error>),
    /// No thread for the writer.
    #[error("no thread or runtime for the writer")]
    NoThread(#[source] std::io::Error),
}

impl Error {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InMemory(_) => "DATABASE_IN_MEMORY",
            Self::Url { .. } => "DATABASE_URL",
            Self::NotOpenable { .. } => "DATABASE_NOT_OPENABLE",
            Self::NotWal { .. } => "DATABASE_NOT_WAL",
            Self::NotMigrated(_) => "SCHEMA_MISSING",
            Self::SchemaTooOld { .. } => "SCHEMA_TOO_OLD",
            Self::SchemaTooNew { .. } => "SCHEMA_TOO_NEW",
            Self::SchemaEdited { .. } => "SCHEMA_EDITED",
            Self::Locked(_) => "DATABASE_LOCKED",
            Self::Busy => "DATABASE_BUSY",
            Self::Contended => "DATABASE_CONTENDED",
            Self::Replaced(_) => "DATABASE_REPLACED",
            Self::Conflict(_) => "DATABASE_CONFLICT",
            Self::NotDurable(_) => "DATABASE_NOT_DURABLE",
            Self::Full(_) => "DATABASE_FULL",
            Self::Failed(_) => "DATABASE_FAILED",
            Self::Closed => "DATABASE_CLOSED",
            Self::ReadOnly(_) => "DATABASE_READ_ONLY",
            Self::Damaged(_) => "DATABASE_DAMAGED",
            Self::Refused(_) => "DATABASE_REFUSED",
            Self::NotReachable(_) => "DATABASE_NOT_REACHABLE",
            Self::Tls(_) => "DATABASE_WITHOUT_TLS",
            Self::Replica(_) => "DATABASE_IS_REPLICA",
            Self::CommitsAsynchronously => "DATABASE_COMMITS_ASYNCHRONOUSLY",
            Self::TooSlow(_) => "DATABASE_TOO_SLOW",
            Self::Serialization(_) => "DATABASE_SERIALIZATION",
            Self::NoThread(_) => "DATABASE_NO_THREAD",
        }
    }

    /// Whether the same request may succeed later, without anybody changing the set-up.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Locked(_)
            | Self::Busy
            | Self::Contended
            | Self::Conflict(_)
            | Self::Full(_)
            | Self::Failed(_)
            | Self::Closed
            | Self::NoThread(_) => true,
            // After a failover the next connection is to the new primary.
            Self::TooSlow(_) | Self::Serialization(_) | Self::Replica(_) | Self::NotReachable(_) => true,
            _ => false,
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        if error.is_transient() { Self::Unavailable(Box::new(error)) } else { Self::Unusable(Box::new(error)) }
    }
}

/// What went wrong in one request to an open store: the database, or a row that does not read as a record.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) enum Trouble {
    Database(Error),
    Row(&'static str),
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Database(error) => error.into(),
            Trouble::Row(column) => Self::Unreadable(column),
        }
    }
}

#[cfg(feature = "sqlite")]
impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Error::of_sqlite(error))
    }
}

#[cfg(feature = "sqlite")]
impl Error {
    /// Sorts what sqlx says of an SQLite database, by SQLite's primary result code
    /// (<https://www.sqlite.org/rescode.html>).
    pub(crate) fn of_sqlite(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else { return Self::Failed(error) };
        let code = database.code().and_then(|code| code.parse::<u32>().ok());
        // BUSY_SNAPSHOT: the busy time-out is of no use.
        if code == Some(517) {
            return Self::Conflict(error);
        }
        let primary = code.map(|code| code & 0xff);
        match primary {
            Some(1) if database.message().starts_with("no such table: idempotency_") => Self::NotMigrated(Some(error)),
            Some(5 | 6) => Self::Locked(error),
            Some(13) => Self::Full(error),
            // NOMEM, INTERRUPT, IOERR, CANTOPEN, PROTOCOL (a race for the log's lock).
            Some(7 | 9 | 10 | 14 | 15) => Self::Failed(error),
            Some(8) => Self::ReadOnly(error),
            Some(11 | 26) => Self::Damaged(error),
            _ => Self::Refused(error),
        }
    }
}

#[cfg(feature = "postgres")]
impl Error {
    /// Sorts what sqlx says of a PostgreSQL server, by SQLSTATE
    /// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
    pub(crate) fn of_postgres(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else {
            return match error {
                sqlx::Error::PoolClosed => Self::Closed,
                sqlx::Error::Configuration(_) => Self::NotReachable(error),
                sqlx::Error::Tls(_) => Self::Tls(error),
                // A certificate is refused while bytes are read: rustls says so as invalid data.
                sqlx::Error::Io(ref io) if io.kind() == std::io::ErrorKind::InvalidData => Self::Tls(error),
                error => Self::Failed(error),
            };
        };
        let code = database.code().unwrap_or_default();
        match &*code {
            "55P03" => Self::Locked(error),
            "57014" => Self::TooSlow(error),
            "40001" | "40P01" => Self::Serialization(Some(error)),
            "25006" => Self::Replica(Some(error)),
            // undefined_table, invalid_schema_name
            "42P01" | "3F000" => Self::NotMigrated(Some(error)),
            "53100" => Self::Full(error),
            // data_corrupted, index_corrupted
            "XX001" | "XX002" => Self::Damaged(error),
            // Connection, resources, operator intervention, system error.
            code if ["08", "53", "57", "58"].contains(&code.get(..2).unwrap_or_default()) => Self::Failed(error),
            _ => Self::Refused(error),
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

    use super::*;

    #[tokio::test]
    async fn a_full_disk_may_have_room_later() {
        let mut connection = SqliteConnectOptions::new().connect().await.unwrap();
        let fill = "PRAGMA max_page_count = 2; CREATE TABLE t (a BLOB); INSERT INTO t VALUES (zeroblob(100000))";
        let error = sqlx::raw_sql(fill).execute(&mut connection).await.unwrap_err();
        let error = Error::of_sqlite(error);
        assert_eq!(error.code(), "DATABASE_FULL");
        assert!(StoreError::from(error).is_transient());
    }

    #[tokio::test]
    async fn a_read_only_database_stays_so() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new().filename(directory.path().join("a.db"));
        options.clone().create_if_missing(true).connect().await.unwrap();
        let mut connection = options.read_only(true).connect().await.unwrap();
        let error = sqlx::query("CREATE TABLE t (a BLOB)").execute(&mut connection).await.unwrap_err();
        let error = Error::of_sqlite(error);
        assert_eq!(error.code(), "DATABASE_READ_ONLY");
        assert!(!StoreError::from(error).is_transient());
    }
}

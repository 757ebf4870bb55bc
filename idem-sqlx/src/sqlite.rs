//! [`SqliteStore`]: records in an SQLite file.

mod options;
mod pulse;
mod schema;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{
    Claimed, Claiming, Fenced, Finish, Found, Guarded, NewClaim, Owning, Pulse, Seen, Step, TakeOver,
};
use idem_core::{Ownership, Record, Scope, StoreError};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Connection, SqlitePool};

use crate::error::{Error, Trouble};

pub use self::options::SqliteOptions;
use self::pulse::SqlitePulse;
use self::writer::{Job, Writer};

/// Records in an SQLite file, for every process of one machine. Clones share the connections.
///
/// One thread writes, in the order of asking; a few connections read beside it. Several stores, in one process or
/// many, may have the same file: they wait for each other, up to the busy time-out. The file needs a local disk (its
/// write-ahead log does not work over a network), and its directory must be writable.
///
/// Every write is on the disk before it is answered (`synchronous = FULL`). Records are dated by this machine's
/// clock, in milliseconds. Its futures need a tokio runtime with time; they may be dropped at any point, and the
/// runtime that opened the store may go.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    options: SqliteOptions,
    file: PathBuf,
    writer: Writer,
    readers: SqlitePool,
}

impl SqliteStore {
    /// Opens the file, creates it where there is none, and brings its schema up to date: a path, a URL
    /// (`sqlite:payments.db`), or [`SqliteOptions`].
    ///
    /// # Errors
    /// [`Error`], saying what helps; [`Error::InMemory`] for a database in memory.
    pub async fn open(options: impl Into<SqliteOptions>) -> Result<Self, Error> {
        Self::start(options.into(), true).await
    }

    /// Opens a file that is there and has its schema, and changes neither.
    ///
    /// # Errors
    /// [`Error`]; [`Error::NotMigrated`] and [`Error::SchemaTooOld`] where there is something to migrate.
    pub async fn connect(options: impl Into<SqliteOptions>) -> Result<Self, Error> {
        Self::start(options.into(), false).await
    }

    /// Brings the schema of a file up to date, creating the file where there is none; for a step of its own before a
    /// deploy. It may be run again, and by several processes at once.
    ///
    /// # Errors
    /// [`Error`]; then nothing was changed.
    pub async fn migrate(options: impl Into<SqliteOptions>) -> Result<(), Error> {
        let options = options.into();
        let mut connection = schema::connect(&options, &options.file()?, true).await?;
        schema::migrate(&mut connection).await?;
        connection.close().await.map_err(Error::of_sqlite)
    }

    /// The whole schema as SQL, for teams that migrate with a tool of their own.
    #[must_use]
    pub fn schema_sql() -> String {
        schema::plain_sql()
    }

    async fn start(options: SqliteOptions, create: bool) -> Result<Self, Error> {
        let file = options.file()?;
        let mut connection = schema::connect(&options, &file, create).await?;
        if create {
            schema::migrate(&mut connection).await?;
        }
        schema::check(&mut connection).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(options.pool_size())
            .acquire_timeout(options.patience())
            // A file does not go away while it is idle.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options.reading(&file));
        let writer = Writer::start(options.clone(), file.clone(), connection)?;
        Ok(Self { options, file, writer, readers })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The record of `scope` as it stands, for tests and for looking.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn record(&self, scope: &Scope) -> Result<Option<Record>, StoreError> {
        Ok(self.read(scope).await?.map(|found| found.record))
    }

    /// Ends the writer, after what is queued, and closes every connection but the heartbeat's. All clones are closed
    /// with it; what they are asked then is [`StoreError::Unavailable`]. Dropping the last clone does the same, a
    /// moment later.
    pub async fn close(&self) {
        let _closed_before = self.writer.write(Job::Close).await;
        self.readers.close().await;
    }

    /// One statement on a connection that only reads: whoever drops this leaves nothing behind.
    async fn read(&self, scope: &Scope) -> Result<Option<Found>, Trouble> {
        let mut reader = self.readers.acquire().await?;
        let now = write::now();
        Ok(write::read(&mut *reader, scope).await?.map(|record| Found { record, now }))
    }
}

#[async_trait]
impl Claiming for SqliteStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        for _ in 0..ROUNDS {
            if let Some(claimed) = self.writer.write(|waiting| Job::Claim(claim.clone(), waiting)).await? {
                return Ok(claimed);
            }
            // Beside the writer, so that replays, bodies and all, do not hold up who writes.
            if let Some(found) = self.read(&claim.scope).await? {
                return Ok(Claimed::Found(Box::new(found)));
            }
            // Swept in between; that it was there does not make anybody its owner.
        }
        Err(StoreError::Unavailable("the record comes and goes".into()))
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.writer.write(|waiting| Job::TakeOver(take.clone(), waiting)).await?)
    }

    async fn strand(&self, seen: &Seen, ask_in: Duration) -> Result<Guarded, StoreError> {
        Ok(self.writer.write(|waiting| Job::Strand(seen.clone(), ask_in, waiting)).await?)
    }
}

#[async_trait]
impl Owning for SqliteStore {
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        Ok(self.writer.write(|waiting| Job::Step(owner.clone(), step.clone(), waiting)).await?)
    }

    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        Ok(self.writer.write(|waiting| Job::Finish(owner.clone(), finish.clone(), waiting)).await?)
    }

    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError> {
        Ok(Box::new(SqlitePulse::new(self.options.clone(), self.file.clone())?))
    }
}

/// How often a claim is tried when the record it met is gone before it can be read.
const ROUNDS: usize = 3;

//! [`SqliteStore`]: records in an SQLite file.

mod join;
mod keep;
mod options;
mod outbox;
mod pulse;
mod recover;
mod schema;
mod sweep;
mod write;
mod writer;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{
    Answered, AuditEntry, Claimed, Claiming, Dated, Evidence, Fenced, Finish, Found, Guarded, Keeping, Mark, NewClaim,
    Oldest, Owning, Pulse, Recovering, Seen, Step, SweepOrder, Sweeping, Swept, TakeOver, Tended, Verdicted,
};
use idem_core::{Ownership, Record, Scope, Store, StoreError};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Connection, Sqlite, SqlitePool};

use crate::error::{Error, Trouble};
use crate::migration::SchemaVersion;

pub use self::options::SqliteOptions;
use self::pulse::SqlitePulse;
use self::writer::{Job, Writer};

/// Records in an SQLite file, for every process of one machine. Clones share the connections.
///
/// # One writer
/// An SQLite file has one writer at a time. idem holds the write lock for its own statements only. Who runs in a
/// transaction ([`Engine::run_tx`](idem_core::Engine::run_tx)) holds it from its beginning to its commit, and every other
/// write of the file, also idem's claims and heartbeats, waits for that, up to the busy time-out: such work should do
/// nothing but statements. A transaction of the application's own holds it from its first write on; it should begin with
/// `BEGIN IMMEDIATE` (`pool.begin_with`), since one that read before it writes is refused at once when anybody wrote in
/// between ([`Error::Conflict`]). While it holds the lock, `claim.open` and `claim.checkpoint` wait in vain: use
/// `claim.open_in` and `claim.checkpoint_in`.
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
    /// For work that runs in a transaction: the application's own pool, or one connection.
    work: SqlitePool,
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

    /// Opens the file of the application's own pool, and brings idem's tables in it up to date. Records then stand beside
    /// the application's rows, and are completed in its transactions ([`Claim::commit`](idem_core::Claim::commit)); work
    /// that runs in a transaction gets one of `pool`. Claims, heartbeats and all else use connections of the store's own.
    ///
    /// The pool's connections must have `synchronous = FULL`, which is SQLite's default: what is announced in a
    /// transaction must outlive a power loss.
    ///
    /// # Errors
    /// [`Error`], saying what helps; [`Error::InMemory`] for a database in memory.
    pub async fn beside(pool: &SqlitePool) -> Result<Self, Error> {
        Self::start(SqliteOptions::beside(pool), true).await
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

    /// How far the schema of a file that is there has come, and how far this release needs it. Nothing is changed.
    ///
    /// # Errors
    /// [`Error`]; [`Error::SchemaTooNew`] and [`Error::SchemaEdited`] where this release cannot tell.
    pub async fn schema_version(options: impl Into<SqliteOptions>) -> Result<SchemaVersion, Error> {
        let options = options.into();
        let mut connection = schema::connect(&options, &options.file()?, false).await?;
        let version = schema::version(&mut connection).await?;
        connection.close().await.map_err(Error::of_sqlite)?;
        Ok(version)
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
        schema::probe(&mut connection).await?;
        let pool = |size| {
            SqlitePoolOptions::new()
                .max_connections(size)
                .acquire_timeout(options.patience())
                // A file does not go away while it is idle.
                .test_before_acquire(false)
                .idle_timeout(None)
                .max_lifetime(None)
        };
        let readers = pool(options.pool_size()).connect_lazy_with(options.reading(&file));
        // SQLite has one writer: a second connection would only wait for the first, and not in its turn.
        let work = options.application().cloned().unwrap_or_else(|| pool(1).connect_lazy_with(options.writing(&file)));
        let writer = Writer::start(options.clone(), file.clone(), connection)?;
        Ok(Self { options, file, writer, readers, work })
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
        if self.options.application().is_none() {
            self.work.close().await;
        }
    }

    async fn reader(&self) -> Result<PoolConnection<Sqlite>, Trouble> {
        Ok(self.readers.acquire().await?)
    }

    /// One statement on a connection that only reads: whoever drops this leaves nothing behind.
    async fn read(&self, scope: &Scope) -> Result<Option<Found>, Trouble> {
        let mut reader = self.reader().await?;
        let now = write::now();
        Ok(write::read(&mut *reader, scope).await?.map(|record| Found { record, now }))
    }
}

#[async_trait]
impl Claiming for SqliteStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        for _ in 0..ROUNDS {
            match self.writer.write(|waiting| Job::Claim(claim.clone(), waiting)).await.map_err(StoreError::from) {
                Ok(Some(claimed)) => return Ok(claimed),
                Ok(None) => {}
                // Nothing can be written now, but a record that is there can be read: replays go on.
                Err(error) if error.is_transient() => {
                    let found = self.read(&claim.scope).await.ok().flatten();
                    return found.map(|found| Claimed::Found(Box::new(found))).ok_or(error);
                }
                Err(error) => return Err(error),
            }
            // Beside the writer, so that replays, bodies and all, do not hold up who writes.
            if let Some(found) = self.read(&claim.scope).await? {
                return Ok(Claimed::Found(Box::new(found)));
            }
            // Swept in between; that it was there does not make anybody its owner.
        }
        Err(Error::Contended.into())
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.writer.write(|waiting| Job::TakeOver(take.clone(), waiting)).await?)
    }

    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError> {
        Ok(self.read(scope).await?.map(Box::new))
    }

    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError> {
        Ok(self.writer.write(|waiting| Job::Tend(seen.clone(), *to, waiting)).await?)
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

#[async_trait]
impl Recovering for SqliteStore {
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(recover::due(&mut reader, grace, after, limit).await?)
    }

    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(recover::unsettled(&mut reader, after, limit).await?)
    }

    async fn oldest(&self) -> Result<Oldest, StoreError> {
        let mut reader = self.reader().await?;
        Ok(recover::oldest(&mut reader).await?)
    }

    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.writer.write(|waiting| Job::TakeToAsk(take.clone(), waiting)).await?)
    }

    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        Ok(self.writer.write(|waiting| Job::Answer(owner.clone(), answered.clone(), waiting)).await?)
    }

    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError> {
        let job = |waiting| Job::Resolve(seen.clone(), verdict.clone(), audit.clone(), waiting);
        Ok(self.writer.write(job).await?)
    }

    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError> {
        Ok(self.writer.write(|waiting| Job::Learn(evidence.clone(), waiting)).await?)
    }

    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(recover::learned(&mut *reader, scope).await?)
    }
}

#[async_trait]
impl Sweeping for SqliteStore {
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError> {
        let mut swept = self.writer.write(|waiting| Job::Sweep(order, waiting)).await?;
        let mut part = swept;
        // A transaction lets few large bodies go; between two of them others write.
        while part.expired + part.bodies > 0 {
            let left = u64::from(order.limit).saturating_sub(swept.expired.max(swept.bodies));
            let Some(left) = u32::try_from(left).ok().filter(|&left| left > 0) else { break };
            part = self.writer.write(|waiting| Job::Expire(left, waiting)).await?;
            swept.expired += part.expired;
            swept.bodies += part.bodies;
        }
        Ok(swept)
    }
}

#[async_trait]
impl Keeping for SqliteStore {
    async fn contracts(&self, operation: &str, version: u32) -> Result<Vec<String>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(keep::contracts(&mut *reader, operation, version).await?)
    }

    async fn add_contract(&self, operation: &str, version: u32, number: u32, text: &str) -> Result<bool, StoreError> {
        let job = |waiting| Job::AddContract(operation.to_owned(), version, number, text.to_owned(), waiting);
        Ok(self.writer.write(job).await?)
    }

    async fn settle_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        let job = |waiting| Job::SettleSetting(name.to_owned(), value.to_owned(), waiting);
        Ok(self.writer.write(job).await?)
    }

    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(keep::settings(&mut *reader).await?)
    }

    async fn sign_of_life(&self) -> Result<(), StoreError> {
        Ok(self.writer.write(Job::SignOfLife).await?)
    }

    async fn silence(&self) -> Result<Option<Duration>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(keep::silence(&mut *reader).await?)
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        Ok(self.writer.write(|waiting| Job::Audit(entry.clone(), waiting)).await?)
    }

    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError> {
        let mut reader = self.reader().await?;
        Ok(keep::audited(&mut *reader, scope).await?)
    }
}

impl Store for SqliteStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How often a claim is tried when the record it met is gone before it can be read.
const ROUNDS: usize = 3;

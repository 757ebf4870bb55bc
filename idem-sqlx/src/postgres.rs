//! [`PgStore`]: records in a PostgreSQL database.

mod desk;
mod join;
mod options;
mod outbox;
mod pulse;
mod schema;
mod session;
mod sql;
mod tend;
mod write;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{
    Answered, AuditEntry, Claimed, Claiming, Dated, Evidence, Fenced, Finish, Found, Guarded, Keeping, Mark, NewClaim,
    Oldest, Owning, Pulse, Recovering, Seen, Step, Store, SweepOrder, Sweeping, Swept, TakeOver, Tended, Verdicted,
};
use idem_core::{Ownership, Record, Scope, StoreError};
use sqlx::types::Uuid;
use sqlx::{Connection, PgPool};

use crate::error::Error;
use crate::migration::SchemaVersion;

use self::desk::Desk;
pub use self::options::PgOptions;
use self::pulse::PgPulse;

/// Records in a PostgreSQL database, for any number of nodes. Clones share the connections.
///
/// Each write is one statement, committed before it is answered; leases and windows are granted and tested by the
/// server's clock. The store has connections of its own, so that a handler that holds one of the application's for its
/// work never waits for itself, and so that nothing that a cancelled caller left in a connection reaches a claim.
///
/// It is opened and used on one tokio runtime. Its futures may be dropped at any point: what was sent goes on, and its
/// own token tells a claimant later whether it was written. PostgreSQL 14 or newer.
#[derive(Debug, Clone)]
pub struct PgStore {
    /// The database's own name.
    id: Uuid,
    desk: Desk,
}

impl PgStore {
    /// Connects, and brings the schema `idem` up to date.
    ///
    /// # Errors
    /// [`Error`], saying what helps: [`Error::NotReachable`], [`Error::Replica`], [`Error::CommitsAsynchronously`], or what is
    /// wrong with the schema.
    pub async fn open(options: impl Into<PgOptions>) -> Result<Self, Error> {
        Self::start(options.into(), true).await
    }

    /// Connects to a database that has its schema, and does not change it: the role needs no right to.
    ///
    /// # Errors
    /// [`Error`]; [`Error::NotMigrated`] and [`Error::SchemaTooOld`] where there is something to migrate.
    pub async fn connect(options: impl Into<PgOptions>) -> Result<Self, Error> {
        Self::start(options.into(), false).await
    }

    /// [`Self::connect`] to the database of an application's pool, with connections of the store's own beside it.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn beside(pool: &PgPool) -> Result<Self, Error> {
        Self::connect(PgOptions::from(pool)).await
    }

    /// Brings the schema up to date; for a step of its own before a deploy. It may be run again, and by several nodes
    /// at once.
    ///
    /// # Errors
    /// [`Error`]; then nothing was changed.
    pub async fn migrate(options: impl Into<PgOptions>) -> Result<(), Error> {
        let options = options.into();
        let mut connection = schema::connect(&options.connect).await?;
        schema::migrate(&mut connection).await?;
        connection.close().await.map_err(Error::of_postgres)
    }

    /// How far the schema has come, and how far this release needs it. Nothing is changed.
    ///
    /// # Errors
    /// [`Error`]; [`Error::SchemaTooNew`] and [`Error::SchemaEdited`] where this release cannot tell.
    pub async fn schema_version(options: impl Into<PgOptions>) -> Result<SchemaVersion, Error> {
        let mut connection = schema::connect(&options.into().connect).await?;
        let version = schema::version(&mut connection).await?;
        connection.close().await.map_err(Error::of_postgres)?;
        Ok(version)
    }

    /// The whole schema as SQL, for teams that migrate with a tool of their own.
    #[must_use]
    pub fn schema_sql() -> String {
        schema::plain_sql()
    }

    async fn start(options: PgOptions, migrate: bool) -> Result<Self, Error> {
        if migrate {
            let mut connection = schema::connect(&options.connect).await?;
            // A replica is named as what it is below, before a migration fails on it.
            if !schema::is_replica(&mut connection).await? {
                schema::migrate(&mut connection).await?;
            }
            connection.close().await.map_err(Error::of_postgres)?;
        }
        // As every later connection is opened: what stands in between and refuses that is told of now.
        let mut connection = schema::connect(&options.session()).await?;
        let id = schema::check(&mut connection, &options).await?;
        connection.close().await.map_err(Error::of_postgres)?;
        Ok(Self { id, desk: Desk::new(options) })
    }

    /// The record of `scope` as it stands, for tests and for looking.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn record(&self, scope: &Scope) -> Result<Option<Record>, StoreError> {
        Ok(self.look(scope).await?.map(|found| found.record))
    }

    /// Closes every connection but the heartbeat's. All clones are closed with it.
    pub async fn close(&self) {
        self.desk.close().await;
    }
}

/// Sends work to the desk, with what it needs: it outlives a caller that goes away.
macro_rules! at_desk {
    ($store:ident, |$session:ident $(, $argument:ident)*| $work:expr) => {{
        $(let $argument = Arc::new($argument.to_owned());)*
        let work = $store.desk.run(move |$session| {
            $(let $argument = Arc::clone(&$argument);)*
            Box::pin(async move { $work.await })
        });
        Ok(work.await?)
    }};
}
use at_desk;

#[async_trait]
impl Claiming for PgStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        at_desk!(self, |session, claim| write::claim(session, &claim))
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        at_desk!(self, |session, take| write::take_over(session, &take))
    }

    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError> {
        let found: Result<Option<Found>, StoreError> = at_desk!(self, |session, scope| write::read(session, &scope));
        Ok(found?.map(Box::new))
    }

    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError> {
        at_desk!(self, |session, seen, to| write::tend(session, &seen, &to))
    }
}

#[async_trait]
impl Owning for PgStore {
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        at_desk!(self, |session, owner, step| write::step(session, &owner, &step))
    }

    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        at_desk!(self, |session, owner, finish| write::finish(session, &owner, &finish))
    }

    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError> {
        Ok(Box::new(PgPulse::new(self.desk.options().clone())?))
    }
}

#[async_trait]
impl Recovering for PgStore {
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let after = after.cloned();
        at_desk!(self, |session, after| tend::due(session, grace, Option::as_ref(&after), limit))
    }

    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let after = after.cloned();
        at_desk!(self, |session, after| tend::unsettled(session, Option::as_ref(&after), limit))
    }

    async fn oldest(&self) -> Result<Oldest, StoreError> {
        at_desk!(self, |session| tend::oldest(session))
    }

    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        at_desk!(self, |session, take| write::take_to_ask(session, &take))
    }

    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        at_desk!(self, |session, owner, answered| write::answer(session, &owner, &answered))
    }

    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError> {
        at_desk!(self, |session, seen, verdict, audit| write::resolve(session, &seen, &verdict, &audit))
    }

    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError> {
        at_desk!(self, |session, evidence| tend::learn(session, &evidence))
    }

    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError> {
        at_desk!(self, |session, scope| tend::learned(session, &scope))
    }
}

#[async_trait]
impl Sweeping for PgStore {
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError> {
        if self.desk.days_may_have_turned() {
            let turned: Result<(), StoreError> = at_desk!(self, |session| tend::turn_days(session));
            turned?;
        }
        at_desk!(self, |session| tend::sweep(session, order))
    }
}

#[async_trait]
impl Keeping for PgStore {
    async fn contracts(&self, operation: &str, version: u32) -> Result<Vec<String>, StoreError> {
        at_desk!(self, |session, operation| tend::contracts(session, &operation, version))
    }

    async fn add_contract(&self, operation: &str, version: u32, number: u32, text: &str) -> Result<bool, StoreError> {
        at_desk!(self, |session, operation, text| tend::add_contract(session, &operation, version, number, &text))
    }

    async fn settle_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        at_desk!(self, |session, name, value| tend::settle_setting(session, &name, &value))
    }

    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        at_desk!(self, |session| tend::settings(session))
    }

    async fn sign_of_life(&self) -> Result<(), StoreError> {
        at_desk!(self, |session| tend::sign_of_life(session))
    }

    async fn silence(&self) -> Result<Option<Duration>, StoreError> {
        at_desk!(self, |session| tend::silence(session))
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        at_desk!(self, |session, entry| tend::audit(session, &entry))
    }

    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError> {
        at_desk!(self, |session, scope| tend::audited(session, &scope))
    }
}

impl Store for PgStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

//! One connection, and how a statement is sent on it.

use std::io::ErrorKind;
use std::time::Duration;

use idem_core::{Ownership, Scope};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Uuid;
use sqlx::{PgConnection, Postgres};
use tokio::time::timeout;

use crate::error::{Error, Trouble};
use crate::postgres::options::{PgOptions, millis};

pub(super) type Bound<'q> = Query<'q, Postgres, PgArguments>;

/// One connection.
pub(super) struct Session<'c> {
    connection: &'c mut PgConnection,
    /// Behind a proxy: what `lock_timeout` and `statement_timeout` are set to.
    timeouts: Option<[String; 2]>,
    may_forget: bool,
    patience: Duration,
    /// Whether statements stay prepared on the connection.
    prepares: bool,
}

impl<'c> Session<'c> {
    /// A connection of the store's own.
    pub(super) fn of(connection: &'c mut PgConnection, options: &PgOptions) -> Self {
        let timeouts = options.behind_proxy.then(|| [millis(options.lock_timeout), millis(options.statement_timeout)]);
        let patience = options.statement_timeout.saturating_add(NETWORK);
        Self { connection, timeouts, may_forget: options.may_forget, patience, prepares: !options.behind_proxy }
    }

    /// A connection inside of the application's transaction, which begins and ends it. The server's time-outs there are
    /// the application's own; a line on which nothing comes is given up after the store's.
    pub(super) fn within(connection: &'c mut PgConnection, options: &PgOptions) -> Self {
        let (may_forget, prepares) = (options.may_forget, !options.behind_proxy);
        let patience = options.statement_timeout.saturating_add(NETWORK);
        Self { connection, timeouts: None, may_forget, patience, prepares }
    }

    /// Runs one statement, in a transaction of its own. After [`Error::Failed`] the connection must not be used again.
    pub(super) async fn rows(&mut self, query: Bound<'_>) -> Result<Vec<PgRow>, Error> {
        // The server keeps its time-outs itself; this is for one that is not to be heard of any more.
        timeout(self.patience, self.send(query)).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn send(&mut self, query: Bound<'_>) -> Result<Vec<PgRow>, Error> {
        let Some([lock, statement]) = self.timeouts.clone() else {
            return query.persistent(self.prepares).fetch_all(&mut *self.connection).await.map_err(Error::of_postgres);
        };
        // A proxy gives the same server connection until the end of a transaction, and no longer: what is prepared and
        // set must be used within it. Nobody cancels this half-way, see `Desk`.
        self.raw("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        let sent = async {
            let set = sqlx::query(SETTINGS).persistent(false).bind(lock).bind(statement).bind(self.may_forget);
            set.fetch_all(&mut *self.connection).await?;
            query.persistent(false).fetch_all(&mut *self.connection).await
        };
        match sent.await {
            Ok(rows) => self.raw("COMMIT").await.map(|()| rows),
            Err(error) => {
                // The error that matters is the statement's.
                let _rolled_back_or_gone = self.raw("ROLLBACK").await;
                Err(Error::of_postgres(error))
            }
        }
    }

    async fn raw(&mut self, sql: &'static str) -> Result<(), Error> {
        sqlx::raw_sql(sql).execute(&mut *self.connection).await.map(|_| ()).map_err(Error::of_postgres)
    }
}

/// $1 to $3: the key.
pub(super) fn scoped<'q>(sql: &'static str, scope: &'q Scope) -> Bound<'q> {
    sqlx::query(sql).bind(scope.tenant().as_str()).bind(scope.operation()).bind(scope.key().as_str())
}

/// $4 and $5: what an owner must show.
pub(super) fn owned<'q>(sql: &'static str, owner: &'q Ownership) -> Result<Bound<'q>, Trouble> {
    Ok(scoped(sql, &owner.scope).bind(number(owner.fence.get())?).bind(token(owner.owner.as_bytes())))
}

pub(super) fn token(bytes: &[u8; 16]) -> Uuid {
    Uuid::from_bytes(*bytes)
}

/// PostgreSQL's integers are signed; a number beyond them was never read from it.
pub(super) fn number(number: u64) -> Result<i64, Trouble> {
    i64::try_from(number).map_err(|_| Trouble::Row("fence"))
}

const SETTINGS: &str = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
    set_config('synchronous_commit', CASE WHEN $3 OR current_setting('synchronous_commit') <> 'off'
        THEN current_setting('synchronous_commit') ELSE 'on' END, true)";

/// A server that is not to be heard of any more.
pub(super) fn silent() -> Error {
    Error::Failed(silence())
}

/// The same, as sqlx would have told it.
pub(super) fn silence() -> sqlx::Error {
    sqlx::Error::Io(ErrorKind::TimedOut.into())
}

/// What a statement may take beyond its time-out at the server.
pub(super) const NETWORK: Duration = Duration::from_secs(3);

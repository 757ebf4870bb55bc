//! Which server, and how it is used.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgPool};

use crate::error::Error;

/// Which server, and how it is used.
///
/// ```
/// use std::time::Duration;
/// use idem_sqlx::PgOptions;
///
/// let options = PgOptions::new("postgres://payments@db.internal/payments")?
///     .connections(20)
///     .lock_timeout(Duration::from_millis(100));
/// # Ok::<(), idem_sqlx::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PgOptions {
    pub(super) connect: PgConnectOptions,
    pub(super) connections: u32,
    pub(super) acquire_timeout: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) idle_transaction_timeout: Duration,
    pub(super) idle_check: Duration,
    pub(super) behind_proxy: bool,
    pub(super) may_forget: bool,
}

impl PgOptions {
    /// The database of `url`, as sqlx reads it: `postgres://user:password@host:port/database?sslmode=verify-full`.
    ///
    /// # Errors
    /// [`Error::NotReachable`] where the URL does not read.
    pub fn new(url: &str) -> Result<Self, Error> {
        PgConnectOptions::from_str(url).map(Self::from).map_err(Error::NotReachable)
    }

    /// How many connections the store has at most, besides the heartbeat's one. Default 10. Twice the server's cores is
    /// plenty: a claim holds one for a round trip only.
    #[must_use]
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How long a request waits for a free connection, before it is [`Error::Failed`]. Default 3 s.
    #[must_use]
    pub fn acquire_timeout(mut self, span: Duration) -> Self {
        self.acquire_timeout = span;
        self
    }

    /// How long a statement waits for a row that somebody writes: then a claim is answered as in progress, another
    /// write with [`Error::Locked`]. Default 200 ms, at least 1 ms.
    #[must_use]
    pub fn lock_timeout(mut self, span: Duration) -> Self {
        self.lock_timeout = span.max(Duration::from_millis(1));
        self
    }

    /// How long a statement may take, before it is [`Error::TooSlow`]. Default 5 s, at least 1 ms.
    #[must_use]
    pub fn statement_timeout(mut self, span: Duration) -> Self {
        self.statement_timeout = span.max(Duration::from_millis(1));
        self
    }

    /// How long the server waits for the next statement of a transaction that the store began for the application's
    /// work, before it ends the session. Default 60 s, at least 1 ms; a value that the role or the database sets is left
    /// as it is. Without one, a service that is gone in silence (its machine, its network) keeps its record locked until
    /// TCP gives up, which by Linux's defaults is two hours: nobody can finish it, renew its lease, or take it over.
    #[must_use]
    pub fn idle_transaction_timeout(mut self, span: Duration) -> Self {
        self.idle_transaction_timeout = span.max(Duration::from_millis(1));
        self
    }

    /// A connection that was not used for that long is tested before it is used again. Default 10 s. (Testing each time
    /// costs a round trip for every claim.)
    #[must_use]
    pub fn idle_check(mut self, span: Duration) -> Self {
        self.idle_check = span;
        self
    }

    /// The address is a connection proxy's that hands connections out for one transaction (PgBouncer with
    /// `pool_mode = transaction`). Prepared statements and session settings do not live there, so each statement is
    /// sent in a transaction of its own that sets its time-outs: correct, at three round trips more.
    #[must_use]
    pub fn behind_transaction_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self.connect = self.connect.statement_cache_capacity(0).extra_float_digits(None);
        self
    }

    /// Uses a server with `synchronous_commit = off`, whose crash forgets the last fraction of a second: claims whose
    /// work has run among them, which then run again. For work that may.
    #[must_use]
    pub fn claims_may_be_forgotten(mut self) -> Self {
        self.may_forget = true;
        self
    }

    pub(super) fn database(&self) -> &str {
        self.connect.get_database().unwrap_or_else(|| self.connect.get_username())
    }

    /// For every connection: what sqlx sends at its start.
    pub(super) fn session(&self) -> PgConnectOptions {
        if self.behind_proxy {
            return self.connect.clone();
        }
        self.connect.clone().options([
            ("lock_timeout", millis(self.lock_timeout)),
            ("statement_timeout", millis(self.statement_timeout)),
            ("default_transaction_isolation", "read committed".to_owned()),
        ])
    }

    /// What begins a transaction for the application's work. One round trip, and no setting that outlives it: behind a
    /// proxy the session is somebody else's next.
    pub(super) fn begin(&self) -> AssertSqlSafe<String> {
        AssertSqlSafe(format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; \
             SELECT set_config('idle_in_transaction_session_timeout', '{}', true) \
             WHERE current_setting('idle_in_transaction_session_timeout') = '0'",
            millis(self.idle_transaction_timeout)
        ))
    }
}

/// A time-out as PostgreSQL reads it; 0 would be none.
pub(super) fn millis(span: Duration) -> String {
    format!("{}ms", span.as_millis().clamp(1, i32::MAX as u128))
}

impl From<PgConnectOptions> for PgOptions {
    fn from(connect: PgConnectOptions) -> Self {
        Self {
            connect,
            connections: 10,
            acquire_timeout: Duration::from_secs(3),
            lock_timeout: Duration::from_millis(200),
            statement_timeout: Duration::from_secs(5),
            idle_transaction_timeout: Duration::from_secs(60),
            idle_check: Duration::from_secs(10),
            behind_proxy: false,
            may_forget: false,
        }
    }
}

impl From<&PgPool> for PgOptions {
    fn from(pool: &PgPool) -> Self {
        Self::from((*pool.connect_options()).clone())
    }
}

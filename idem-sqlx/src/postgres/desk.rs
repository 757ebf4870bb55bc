//! Where statements are sent from: a pool of the store's own, and tasks that no caller can cancel.
//!
//! In a pool that callers share, a `begin` cancelled in flight can hand its connection on inside a transaction; the next
//! insert then reports its row and is never committed: two owners. Here a caller that goes away leaves its task behind,
//! which ends what was begun, and nothing but a single statement is ever begun without a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgPool, Postgres};
use tokio::time::timeout;

use crate::error::{Error, Trouble};
use crate::postgres::options::PgOptions;
use crate::postgres::session::{NETWORK, Session, silence};

/// Clones share the connections.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    options: Arc<PgOptions>,
    pool: PgPool,
    /// For work that runs in a transaction; a handler that holds one of these never waits for a claim's.
    work: PgPool,
    opened: Instant,
    /// Seconds after `opened` at which the days are looked at next.
    days_at: Arc<AtomicU64>,
}

impl Desk {
    pub(super) fn new(options: PgOptions) -> Self {
        let idle_check = options.idle_check;
        // Behind a proxy a setting may reach somebody else's transaction; there each of idem's says it for itself.
        let remembers = !options.may_forget && !options.behind_proxy;
        let pool = || {
            PgPoolOptions::new()
                .max_connections(options.connections)
                .acquire_timeout(options.acquire_timeout)
                // What the server was told at the start may be another thing by now, for the role or the database.
                .after_connect(move |connection, _| {
                    Box::pin(async move {
                        if remembers {
                            sqlx::raw_sql(REMEMBER).execute(connection).await?;
                        }
                        Ok(())
                    })
                })
        };
        let work = pool()
            // The pool tests a connection that comes back, and waits for it as long as TCP does: on a line on which
            // nothing comes any more, for a quarter of an hour.
            .after_release(|connection, _| {
                Box::pin(
                    async move { timeout(NETWORK, connection.ping()).await.map_err(|_| silence())?.map(|()| true) },
                )
            })
            .connect_lazy_with(options.connect.clone());
        let pool = pool()
            // Below instead: a test each time is a round trip for every claim.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > idle_check {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options.session());
        Self { options: Arc::new(options), pool, work, opened: Instant::now(), days_at: Arc::default() }
    }

    pub(super) fn options(&self) -> &PgOptions {
        &self.options
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
        self.work.close().await;
    }

    pub(super) fn work(&self) -> PgPool {
        self.work.clone()
    }

    /// True once in a while, for one of all that ask.
    pub(super) fn days_may_have_turned(&self) -> bool {
        let now = self.opened.elapsed().as_secs();
        let next = self.days_at.load(Ordering::Relaxed);
        now >= next
            && self.days_at.compare_exchange(next, now + DAYS_EVERY, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Runs `work` to its end, whatever becomes of the caller; again where the database gave it up for a rival's.
    pub(super) async fn run<T, W>(&self, work: W) -> Result<T, Trouble>
    where
        T: Send + 'static,
        W: for<'s> Fn(&'s mut Session<'_>) -> BoxFuture<'s, Result<T, Trouble>> + Send + Sync + 'static,
    {
        let (pool, options) = (self.pool.clone(), Arc::clone(&self.options));
        let task = tokio::spawn(async move {
            let mut tries = 0;
            loop {
                let mut connection = pool.acquire().await.map_err(Error::of_postgres)?;
                let done = work(&mut Session::of(&mut connection, &options)).await;
                match done {
                    Err(Trouble::Database(Error::Serialization(_))) if tries < TRIES => tries += 1,
                    Err(Trouble::Database(error)) => {
                        if is_the_connections(&error) {
                            hang_up(connection);
                        }
                        return Err(error.into());
                    }
                    done => return done,
                }
                drop(connection);
                tokio::time::sleep(PAUSE.mul_f64(fastrand::f64()) * tries).await;
            }
        });
        // The task ends early only with its runtime.
        task.await.unwrap_or_else(|_| Err(Error::Closed.into()))
    }
}

/// After these a new connection may do better: the old one is broken, or its server is no primary any more.
fn is_the_connections(error: &Error) -> bool {
    matches!(error, Error::Failed(_) | Error::Replica(_) | Error::TooSlow(_))
}

fn hang_up(connection: PoolConnection<Postgres>) {
    drop(connection.detach());
}

const REMEMBER: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'";

const TRIES: u32 = 5;

const PAUSE: Duration = Duration::from_millis(20);

/// In seconds. Partitions are made two days ahead.
const DAYS_EVERY: u64 = 600;

//! The heartbeat's own connection.

use std::time::Duration;

use idem_core::store::Pulse;
use idem_core::{Ownership, StoreError};
use sqlx::{ConnectOptions, PgConnection, Row};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::error::{Error, Trouble};
use crate::postgres::options::PgOptions;
use crate::postgres::session::{Bound, Session, number, silence, token};
use crate::postgres::sql;
use crate::postgres::write::micros;

/// Renews leases on the heartbeat's thread, by a runtime and a connection of its own. The connection is opened by the
/// first beat, and again after one that failed.
pub(super) struct PgPulse {
    runtime: Runtime,
    options: PgOptions,
    connection: Option<PgConnection>,
}

impl PgPulse {
    pub(super) fn new(options: PgOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::NoThread)?;
        Ok(Self { runtime, options, connection: None })
    }
}

impl Pulse for PgPulse {
    fn beat(&mut self, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, StoreError> {
        let owners: Vec<_> = live.iter().map(|(owner, _)| owner).collect();
        let leases: Vec<_> = live.iter().map(|(_, lease)| micros(*lease)).collect();
        self.send(|| Ok(about(sql::BEAT, &owners)?.bind(leases)))
    }

    fn owns(&mut self, owners: &[Ownership]) -> Result<Vec<bool>, StoreError> {
        let owners: Vec<_> = owners.iter().collect();
        self.send(|| about(sql::OWNS, &owners))
    }
}

impl PgPulse {
    /// Sends a statement that says of each owner whether it owns its record.
    fn send<'q>(&mut self, query: impl FnOnce() -> Result<Bound<'q>, Trouble>) -> Result<Vec<bool>, StoreError> {
        let Self { runtime, options, connection } = self;
        let sent: Result<_, Trouble> = runtime.block_on(async {
            let open = match connection {
                Some(open) => open,
                None => {
                    // One thread beats for all claims: a server that takes a connection and then says nothing must not
                    // keep it.
                    let opened = timeout(options.acquire_timeout, options.session().connect()).await;
                    connection.insert(opened.unwrap_or_else(|_| Err(silence())).map_err(Error::of_postgres)?)
                }
            };
            let rows = Session::of(open, options).rows(query()?).await?;
            rows.iter().map(|row| row.try_get(0).map_err(|_| Trouble::Row("owns"))).collect()
        });
        if sent.is_err() {
            *connection = None;
        }
        Ok(sent?)
    }
}

/// $1 to $5: what each owner must show.
fn about<'q>(sql: &'static str, owners: &[&'q Ownership]) -> Result<Bound<'q>, Trouble> {
    let mut fences = Vec::with_capacity(owners.len());
    for owner in owners {
        fences.push(number(owner.fence.get())?);
    }
    Ok(sqlx::query(sql)
        .bind(owners.iter().map(|owner| owner.scope.tenant().as_str()).collect::<Vec<_>>())
        .bind(owners.iter().map(|owner| owner.scope.operation()).collect::<Vec<_>>())
        .bind(owners.iter().map(|owner| owner.scope.key().as_str()).collect::<Vec<_>>())
        .bind(fences)
        .bind(owners.iter().map(|owner| token(owner.owner.as_bytes())).collect::<Vec<_>>()))
}

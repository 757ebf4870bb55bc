//! The heartbeat's own connection.

use std::time::Duration;

use idem_core::store::Pulse;
use idem_core::{Ownership, StoreError};
use sqlx::{ConnectOptions, PgConnection, Row};
use tokio::runtime::Runtime;

use crate::error::{Error, Trouble};
use crate::postgres::options::PgOptions;
use crate::postgres::session::{Session, number, token};
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
        let Self { runtime, options, connection } = self;
        let beat = runtime.block_on(async {
            let open = match connection {
                Some(open) => open,
                None => connection.insert(options.session().connect().await.map_err(Error::of_postgres)?),
            };
            renew(open, options, live).await
        });
        if beat.is_err() {
            *connection = None;
        }
        Ok(beat?)
    }
}

async fn renew(
    connection: &mut PgConnection,
    options: &PgOptions,
    live: &[(Ownership, Duration)],
) -> Result<Vec<bool>, Trouble> {
    let mut fences = Vec::with_capacity(live.len());
    for (owner, _) in live {
        fences.push(number(owner.fence.get())?);
    }
    let query = sqlx::query(sql::BEAT)
        .bind(live.iter().map(|(owner, _)| owner.scope.tenant().as_str()).collect::<Vec<_>>())
        .bind(live.iter().map(|(owner, _)| owner.scope.operation()).collect::<Vec<_>>())
        .bind(live.iter().map(|(owner, _)| owner.scope.key().as_str()).collect::<Vec<_>>())
        .bind(fences)
        .bind(live.iter().map(|(owner, _)| token(owner.owner.as_bytes())).collect::<Vec<_>>())
        .bind(live.iter().map(|(_, lease)| micros(*lease)).collect::<Vec<_>>());
    let rows = Session::of(connection, options).rows(query).await?;
    rows.iter().map(|row| row.try_get(0).map_err(|_| Trouble::Row("owns"))).collect()
}

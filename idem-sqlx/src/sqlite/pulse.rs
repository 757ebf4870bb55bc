//! The heartbeat's own connection.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use idem_core::store::Pulse;
use idem_core::{Ownership, StoreError};
use sqlx::sqlite::SqliteRow;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::runtime::Runtime;

use crate::error::{Error, Trouble};
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::write::{TICK, now};

/// Renews leases on the heartbeat's thread, by a runtime and a connection of its own. The connection is opened by the
/// first beat, and again after one that failed.
pub(super) struct SqlitePulse {
    runtime: Runtime,
    options: SqliteOptions,
    file: PathBuf,
    connection: Option<SqliteConnection>,
}

impl SqlitePulse {
    pub(super) fn new(options: SqliteOptions, file: PathBuf) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::NoThread)?;
        Ok(Self { runtime, options, file, connection: None })
    }
}

impl Pulse for SqlitePulse {
    fn beat(&mut self, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, StoreError> {
        self.connected(async |open| renew(open, live).await)
    }

    fn owns(&mut self, owners: &[Ownership]) -> Result<Vec<bool>, StoreError> {
        self.connected(async |open| owns(open, owners).await)
    }
}

impl SqlitePulse {
    fn connected(
        &mut self,
        send: impl AsyncFnOnce(&mut SqliteConnection) -> Result<Vec<bool>, Trouble>,
    ) -> Result<Vec<bool>, StoreError> {
        let Self { runtime, options, file, connection } = self;
        let sent = runtime.block_on(async {
            let open = match connection {
                Some(open) => open,
                None => connection.insert(options.writing(file).connect().await?),
            };
            send(open).await
        });
        if sent.is_err() {
            *connection = None;
        }
        Ok(sent?)
    }
}

async fn renew(connection: &mut SqliteConnection, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, Trouble> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let now = now();
    let asked: Vec<_> = live
        .iter()
        .map(|(owner, lease)| {
            let scope = &owner.scope;
            let token = hex(owner.owner.as_bytes());
            let locked_until = TICK.count_after(now, *lease);
            (scope.tenant().as_str(), scope.operation(), scope.key().as_str(), owner.fence.get(), token, locked_until)
        })
        .collect();
    // Texts and numbers only: they always serialise.
    let asked = serde_json::to_string(&asked).unwrap_or_default();
    let rows = sqlx::query(RENEW).bind(asked).bind(TICK.count(now)).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    are_among(&rows, live.iter().map(|(owner, _)| owner))
}

async fn owns(connection: &mut SqliteConnection, owners: &[Ownership]) -> Result<Vec<bool>, Trouble> {
    let asked: Vec<_> = owners
        .iter()
        .map(|owner| {
            let (scope, token) = (&owner.scope, hex(owner.owner.as_bytes()));
            (scope.tenant().as_str(), scope.operation(), scope.key().as_str(), owner.fence.get(), token)
        })
        .collect();
    // Texts and numbers only: they always serialise.
    let asked = serde_json::to_string(&asked).unwrap_or_default();
    let rows = sqlx::query(OWNS).bind(asked).fetch_all(connection).await?;
    are_among(&rows, owners.iter())
}

/// Which owners the rows name.
fn are_among<'o>(rows: &[SqliteRow], owners: impl Iterator<Item = &'o Ownership>) -> Result<Vec<bool>, Trouble> {
    let mut named = HashSet::new();
    for row in rows {
        named.insert(identity(row).map_err(|_| Trouble::Row("owner_token"))?);
    }
    let asked = owners.map(|owner| {
        let scope = &owner.scope;
        let key = (scope.tenant().as_str().into(), scope.operation().into(), scope.key().as_str().into());
        (key, owner.fence.get().cast_signed(), owner.owner.as_bytes().to_vec())
    });
    Ok(asked.map(|identity| named.contains(&identity)).collect())
}

/// Key, fence and token: what an owner shows.
type Identity = ((String, String, String), i64, Vec<u8>);

fn identity(row: &SqliteRow) -> Result<Identity, sqlx::Error> {
    Ok(((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?), row.try_get(3)?, row.try_get(4)?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// All live claims in one statement; each finds its row by the primary key.
pub(super) const RENEW: &str = "
UPDATE idempotency_requests SET locked_until = live.value ->> 5, revision = revision + 1, updated_at = ?2
FROM json_each(?1) AS live
WHERE tenant_id = live.value ->> 0 AND operation_name = live.value ->> 1 AND idempotency_key = live.value ->> 2
    AND fence = live.value ->> 3 AND hex(owner_token) = live.value ->> 4 AND status = 'in_progress'
RETURNING tenant_id, operation_name, idempotency_key, fence, owner_token";

pub(super) const OWNS: &str = "
SELECT tenant_id, operation_name, idempotency_key, fence, owner_token
FROM json_each(?1) AS live
CROSS JOIN idempotency_requests
    ON tenant_id = live.value ->> 0 AND operation_name = live.value ->> 1 AND idempotency_key = live.value ->> 2
    AND fence = live.value ->> 3 AND hex(owner_token) = live.value ->> 4 AND status = 'in_progress'";

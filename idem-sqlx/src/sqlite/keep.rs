//! Contracts, settings and the audit, in SQL.

use std::time::Duration;

use idem_core::Scope;
use idem_core::store::{AuditEntry, Dated};
use sqlx::sqlite::SqliteRow;
use sqlx::{Executor, Row, Sqlite, SqliteConnection};

use crate::error::Trouble;
use crate::row;
use crate::sqlite::write::{TICK, now, scoped};

pub(super) async fn contracts<'c>(
    from: impl Executor<'c, Database = Sqlite>,
    operation: &str,
    version: u32,
) -> Result<Vec<String>, Trouble> {
    let rows = sqlx::query(CONTRACTS).bind(operation).bind(i64::from(version)).fetch_all(from).await?;
    rows.iter().map(|row| row.try_get(0).map_err(|_| Trouble::Row("contract"))).collect()
}

/// Only at the next place, which nobody has taken.
pub(super) async fn add_contract(
    tx: &mut SqliteConnection,
    operation: &str,
    version: u32,
    number: u32,
    text: &str,
) -> Result<bool, Trouble> {
    let added = sqlx::query(ADD_CONTRACT)
        .bind(operation)
        .bind(i64::from(version))
        .bind(i64::from(number))
        .bind(text)
        .bind(TICK.count(now()))
        .execute(tx)
        .await?;
    Ok(added.rows_affected() == 1)
}

pub(super) async fn settle_setting(tx: &mut SqliteConnection, name: &str, value: &str) -> Result<String, Trouble> {
    sqlx::query(SETTLE).bind(name).bind(value).bind(TICK.count(now())).execute(&mut *tx).await?;
    let row = sqlx::query(SETTING).bind(name).fetch_one(tx).await?;
    row.try_get(0).map_err(|_| Trouble::Row("value"))
}

/// Every setting.
pub(super) async fn settings<'c>(from: impl Executor<'c, Database = Sqlite>) -> Result<Vec<(String, String)>, Trouble> {
    let rows = sqlx::query(SETTINGS).fetch_all(from).await?;
    let setting = |row: &SqliteRow| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(setting).collect::<Result<_, sqlx::Error>>().map_err(|_| Trouble::Row("value"))
}

/// A worker is alive.
pub(super) async fn sign_of_life(tx: &mut SqliteConnection) -> Result<(), Trouble> {
    sqlx::query(SIGN).bind(TICK.count(now())).execute(tx).await?;
    Ok(())
}

/// How long ago a worker gave a sign of life.
pub(super) async fn silence<'c>(from: impl Executor<'c, Database = Sqlite>) -> Result<Option<Duration>, Trouble> {
    let Some(row) = sqlx::query(SIGNED).fetch_optional(from).await? else { return Ok(None) };
    let signed: i64 = row.try_get(0).map_err(|_| Trouble::Row("at"))?;
    let silent = u64::try_from(TICK.count(now()).saturating_sub(signed)).unwrap_or_default();
    Ok(Some(Duration::from_millis(silent)))
}

pub(super) async fn audit(tx: &mut SqliteConnection, entry: &AuditEntry) -> Result<(), Trouble> {
    let scope = entry.scope.as_ref();
    sqlx::query(AUDIT)
        .bind(scope.map(|scope| scope.tenant().as_str()))
        .bind(scope.map(Scope::operation))
        .bind(scope.map(|scope| scope.key().as_str()))
        .bind(entry.action.as_str())
        .bind(entry.actor.as_str())
        .bind(entry.reason.as_str())
        .bind(TICK.count(now()))
        .execute(tx)
        .await?;
    Ok(())
}

pub(super) async fn audited<'c>(
    from: impl Executor<'c, Database = Sqlite>,
    scope: &Scope,
) -> Result<Vec<Dated<AuditEntry>>, Trouble> {
    scoped(AUDITED, scope).fetch_all(from).await?.iter().map(|row| row::audit(row, TICK)).collect()
}

const CONTRACTS: &str = "
SELECT contract FROM idempotency_contracts WHERE operation_name = ?1 AND version = ?2 ORDER BY number";

const ADD_CONTRACT: &str = "
INSERT INTO idempotency_contracts (operation_name, version, number, contract, first_seen_at)
SELECT ?1, ?2, ?3, ?4, ?5
WHERE ?3 = (SELECT count(*) FROM idempotency_contracts WHERE operation_name = ?1 AND version = ?2)";

const SETTLE: &str = "
INSERT INTO idempotency_settings (name, value, updated_at) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING";

const SETTING: &str = "
SELECT value FROM idempotency_settings WHERE name = ?1";

const SETTINGS: &str = "
SELECT name, value FROM idempotency_settings ORDER BY name";

const SIGN: &str = "
INSERT INTO idempotency_progress (name, at) VALUES ('worker', ?1) ON CONFLICT (name) DO UPDATE SET at = excluded.at";

const SIGNED: &str = "
SELECT at FROM idempotency_progress WHERE name = 'worker'";

const AUDIT: &str = "
INSERT INTO idempotency_audit (tenant_id, operation_name, idempotency_key, action, actor, reason, acted_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const AUDITED: &str = "
SELECT tenant_id, operation_name, idempotency_key, action, actor, reason, acted_at AS at FROM idempotency_audit
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 ORDER BY audit_id";

/// Every statement, for the test of their plans.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[CONTRACTS, ADD_CONTRACT, SETTLE, SETTING, SETTINGS, SIGN, SIGNED, AUDIT, AUDITED];

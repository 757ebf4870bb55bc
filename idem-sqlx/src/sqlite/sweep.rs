//! Forgetting, in SQL: one transaction of a few rows, found by indexes that hold nothing else.

use idem_core::store::{SweepOrder, Swept};
use sqlx::SqliteConnection;

use crate::error::Trouble;
use crate::row;
use crate::sqlite::write::{TICK, now, scoped};

/// T16, T17, bodies. What is purged was expired in an earlier round.
pub(super) async fn sweep(tx: &mut SqliteConnection, order: SweepOrder) -> Result<Swept, Trouble> {
    let now = TICK.count(now());
    let limit = u64::from(order.limit);
    let mut purged = sqlx::query(PURGE).bind(now).bind(i64::from(order.limit)).execute(&mut *tx).await?.rows_affected();
    if order.purge_tombstones && purged < limit {
        let left = i64::try_from(limit - purged).unwrap_or(i64::MAX);
        for tombstone in sqlx::query(TOMBSTONES).bind(now).bind(left).fetch_all(&mut *tx).await? {
            let scope = row::scope(&tombstone, TICK)?;
            for forget in [FORGET_EVIDENCE, FORGET_CALLS, FORGET_RECORD] {
                scoped(forget, &scope).execute(&mut *tx).await?;
            }
            purged += 1;
        }
    }
    let bodies =
        sqlx::query(DROP_BODIES).bind(now).bind(i64::from(order.limit)).execute(&mut *tx).await?.rows_affected();
    let over = sqlx::query(EXPIRE).bind(now).bind(i64::from(order.limit)).fetch_all(&mut *tx).await?;
    for expired in &over {
        // What a call was is no secret, what it gave may be.
        scoped(CLEAR_OUTCOMES, &row::scope(expired, TICK)?).execute(&mut *tx).await?;
    }
    Ok(Swept { bodies, expired: over.len() as u64, purged })
}

const PURGE: &str = "
DELETE FROM idempotency_requests WHERE rowid IN (
    SELECT rowid FROM idempotency_requests
    WHERE (first_call_at IS NULL) = 1 AND purge_at <= ?1 AND expires_at IS NULL AND purge_at IS NOT NULL
        AND status = 'expired'
    ORDER BY purge_at LIMIT ?2)";

const TOMBSTONES: &str = "
SELECT tenant_id, operation_name, idempotency_key FROM idempotency_requests
WHERE (first_call_at IS NULL) = 0 AND purge_at <= ?1 AND expires_at IS NULL AND purge_at IS NOT NULL
    AND status = 'expired'
ORDER BY purge_at LIMIT ?2";

const FORGET_EVIDENCE: &str = "
DELETE FROM idempotency_evidence WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3";

const FORGET_CALLS: &str = "
DELETE FROM idempotency_calls WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3";

const FORGET_RECORD: &str = "
DELETE FROM idempotency_requests WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3";

const DROP_BODIES: &str = "
UPDATE idempotency_requests SET response_body = NULL, revision = revision + 1, updated_at = ?1
WHERE rowid IN (
    SELECT rowid FROM idempotency_requests
    WHERE body_until <= ?1 AND body_until IS NOT NULL AND response_body IS NOT NULL AND expires_at > ?1
    ORDER BY body_until LIMIT ?2)";

/// A failed record whose call is open is not settled: it waits for recovery, and costs a look each round.
const EXPIRE: &str = "
UPDATE idempotency_requests SET
    status = 'expired', response_status = NULL, response_headers = NULL, response_body = NULL, error_code = NULL,
    checkpoint = NULL, checkpoint_version = NULL, checkpoint_data = NULL, next_attempt_at = NULL, parked_at = NULL,
    finished_at = NULL, expires_at = NULL, body_until = NULL, revision = revision + 1, updated_at = ?1
WHERE rowid IN (
    SELECT rowid FROM idempotency_requests r
    WHERE expires_at <= ?1 AND expires_at IS NOT NULL
        AND (status IN ('completed', 'failed_replayable') OR (status = 'failed_retryable' AND NOT EXISTS (
            SELECT 1 FROM idempotency_calls c
            WHERE c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                AND c.idempotency_key = r.idempotency_key AND c.state = 'open')))
    ORDER BY expires_at LIMIT ?2)
RETURNING tenant_id, operation_name, idempotency_key";

const CLEAR_OUTCOMES: &str = "
UPDATE idempotency_calls SET outcome = X''
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND outcome IS NOT NULL";

/// Every statement, for the test of their plans.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[PURGE, TOMBSTONES, FORGET_EVIDENCE, FORGET_CALLS, FORGET_RECORD, DROP_BODIES, EXPIRE, CLEAR_OUTCOMES];

/// Which index finds which.
#[cfg(test)]
pub(super) const INDEXED: &[(&str, &str)] = &[
    (PURGE, "idempotency_requests_purge"),
    (TOMBSTONES, "idempotency_requests_purge"),
    (DROP_BODIES, "idempotency_requests_bodies"),
    (EXPIRE, "idempotency_requests_expiry"),
];

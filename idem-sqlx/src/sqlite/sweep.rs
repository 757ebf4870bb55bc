//! Forgetting, in SQL: one transaction of a few rows, found by indexes that hold nothing else.

use idem_core::store::{SweepOrder, Swept};
use sqlx::{Row, SqliteConnection};

use crate::error::Trouble;
use crate::row;
use crate::sqlite::write::{TICK, now, scoped};

/// T17, then T16 and bodies as [`expire`] does. What is purged was expired in an earlier round.
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
    Ok(Swept { purged, ..expire(tx, order.limit).await? })
}

/// T16 and bodies, at most `limit` of each, and of large bodies fewer: the pages of each are walked through while
/// everybody else who writes waits.
pub(super) async fn expire(tx: &mut SqliteConnection, limit: u32) -> Result<Swept, Trouble> {
    let now = TICK.count(now());
    let few = few_enough(tx, SIZES_OF_BODIES, now, limit).await?;
    let bodies = sqlx::query(DROP_BODIES).bind(now).bind(few).execute(&mut *tx).await?.rows_affected();
    let few = few_enough(tx, SIZES_OF_EXPIRED, now, limit).await?;
    let over = sqlx::query(EXPIRE).bind(now).bind(few).fetch_all(&mut *tx).await?;
    for expired in &over {
        // What a call was is no secret, what it gave may be.
        scoped(CLEAR_OUTCOMES, &row::scope(expired, TICK)?).execute(&mut *tx).await?;
    }
    Ok(Swept { bodies, expired: over.len() as u64, purged: 0 })
}

/// How many of the first `limit` bodies have [`BYTES`] together; one, where the first alone has more.
async fn few_enough(tx: &mut SqliteConnection, sizes: &'static str, now: i64, limit: u32) -> Result<i64, Trouble> {
    let (mut few, mut bytes) = (0, 0);
    for size in sqlx::query(sizes).bind(now).bind(i64::from(limit)).fetch_all(tx).await? {
        bytes += size.try_get::<i64, _>("size")?;
        if few > 0 && bytes > BYTES {
            break;
        }
        few += 1;
    }
    Ok(few)
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

macro_rules! old_bodies {
    () => {
        "WHERE body_until <= ?1 AND body_until IS NOT NULL AND response_body IS NOT NULL AND expires_at > ?1
    ORDER BY body_until LIMIT ?2"
    };
}

const SIZES_OF_BODIES: &str = concat!("SELECT length(response_body) AS size FROM idempotency_requests ", old_bodies!());

const DROP_BODIES: &str = concat!(
    "
UPDATE idempotency_requests SET response_body = NULL, revision = revision + 1, updated_at = ?1
WHERE rowid IN (
    SELECT rowid FROM idempotency_requests ",
    old_bodies!(),
    ")"
);

/// A failed record whose call is open is not settled: it waits for recovery, and costs a look each round.
macro_rules! expired {
    () => {
        "WHERE expires_at <= ?1 AND expires_at IS NOT NULL
        AND (status IN ('completed', 'failed_replayable') OR (status = 'failed_retryable' AND NOT EXISTS (
            SELECT 1 FROM idempotency_calls c
            WHERE c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                AND c.idempotency_key = r.idempotency_key AND c.state = 'open')))
    ORDER BY expires_at LIMIT ?2"
    };
}

/// The length stands in the row's head: no body is read for it.
const SIZES_OF_EXPIRED: &str =
    concat!("SELECT coalesce(length(response_body), 0) AS size FROM idempotency_requests r ", expired!());

const EXPIRE: &str = concat!(
    "
UPDATE idempotency_requests SET
    status = 'expired', response_status = NULL, response_headers = NULL, response_body = NULL,
    checkpoint = NULL, checkpoint_version = NULL, checkpoint_data = NULL, next_attempt_at = NULL, parked_at = NULL,
    finished_at = NULL, expires_at = NULL, body_until = NULL, revision = revision + 1, updated_at = ?1
WHERE rowid IN (
    SELECT rowid FROM idempotency_requests r ",
    expired!(),
    ")
RETURNING tenant_id, operation_name, idempotency_key"
);

const CLEAR_OUTCOMES: &str = "
UPDATE idempotency_calls SET outcome = X''
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND outcome IS NOT NULL";

/// The bodies of one transaction, in bytes. Measured with 500 bodies of 64 KiB (3.40, an ext4 disk): in one transaction a
/// second, by this bound 20 to 40 ms each, as long as 500 bodies of 600 bytes take.
const BYTES: i64 = 1 << 20;

/// Every statement, for the test of their plans.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    PURGE,
    TOMBSTONES,
    FORGET_EVIDENCE,
    FORGET_CALLS,
    FORGET_RECORD,
    SIZES_OF_BODIES,
    DROP_BODIES,
    SIZES_OF_EXPIRED,
    EXPIRE,
    CLEAR_OUTCOMES,
];

/// Which index finds which.
#[cfg(test)]
pub(super) const INDEXED: &[(&str, &str)] = &[
    (PURGE, "idempotency_requests_purge"),
    (TOMBSTONES, "idempotency_requests_purge"),
    (SIZES_OF_BODIES, "idempotency_requests_bodies"),
    (DROP_BODIES, "idempotency_requests_bodies"),
    (SIZES_OF_EXPIRED, "idempotency_requests_expiry"),
    (EXPIRE, "idempotency_requests_expiry"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::options::SqliteOptions;
    use crate::sqlite::schema;

    /// Whoever else writes waits for that many bytes, whatever the limit is.
    #[tokio::test]
    async fn one_transaction_lets_few_large_bodies_go() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("idem.db");
        let mut connection = schema::connect(&SqliteOptions::new(&file), &file, true).await.unwrap();
        schema::migrate(&mut connection).await.unwrap();
        let insert = "INSERT INTO idempotency_requests (
            tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token,
            revision, attempts, created_at, updated_at, response_status, response_headers, response_body, finished_at,
            expires_at, body_until, purge_at)
            VALUES ('a', 'b', ?1, zeroblob(32), 1, 1, 'completed', 1, zeroblob(16), 1, 1, 1, 1, 201, X'', zeroblob(?2), 1, ?3, ?4,
            ?5)";
        let later = i64::MAX / 2;
        // The first one alone is larger than the bound; then there are three to a bound.
        let sizes = [3 * BYTES, BYTES / 3, BYTES / 3, BYTES / 3, BYTES / 3];
        for (kind, expires_at, body_until) in [("expired", 1, None), ("body", later, Some(1_i64))] {
            for (number, size) in sizes.iter().enumerate() {
                let query = sqlx::query(insert).bind(format!("{kind}-{number}")).bind(size).bind(expires_at);
                query.bind(body_until).bind(later).execute(&mut connection).await.unwrap();
            }
        }
        let mut gone = Vec::new();
        for _ in 0..4 {
            let Ok(swept) = expire(&mut connection, 100).await else { panic!("the sweep failed") };
            gone.push((swept.expired, swept.bodies));
        }
        assert_eq!(gone, [(1, 1), (3, 3), (1, 1), (0, 0)]);
    }
}

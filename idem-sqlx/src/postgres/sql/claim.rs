//! Getting a record, and reading it.

/// Insert, and on conflict the row, in one round trip. No row at all (`claimed_at` and `tenant_id` NULL): a rival
/// committed in between; that is nobody's record yet.
///
/// The insert alone decides who owns a key. `NOT EXISTS` only spares a replay the row that would be built and checked
/// against every constraint of the table before its conflict is found, half of what a replay costs the server. Calls
/// come in no order, which spares it a sort: see `found`.
pub(in crate::postgres) const CLAIM: &str = concat!(
    "WITH claimed AS (
    INSERT INTO idem.idempotency_requests (
        tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token,
        revision, attempts, locked_until, created_at, updated_at, sweep_at)
    SELECT $1, $2, $3, $4, $5, $6, 'in_progress', 1, $7, 1, 1, ",
    after!("t", "$8"),
    ", t, t, t + interval '24 hours'
    FROM (SELECT clock_timestamp() AS t OFFSET 0) AS clock
    WHERE NOT EXISTS (SELECT FROM idem.idempotency_requests r WHERE ",
    key!(),
    ")
    ON CONFLICT (tenant_id, operation_name, idempotency_key) DO NOTHING
    RETURNING created_at
)
SELECT own.claimed_at, ",
    micros!("clock_timestamp()"),
    " AS now, ",
    columns!(),
    " FROM (SELECT (SELECT ",
    micros!("created_at"),
    " FROM claimed) AS claimed_at) AS own
    LEFT JOIN idem.idempotency_requests r ON own.claimed_at IS NULL AND ",
    key!(),
    " ",
    calls!()
);

/// A claim that has waited for a rival's insert, which was then taken back, was dated before: dates it anew, if it still
/// stands as it was inserted. Nobody has answered from it.
pub(in crate::postgres) const DATE_CLAIM: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (created_at, updated_at, locked_until) = (
        SELECT t, t, ",
    after!("t", "$6"),
    " FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock)
WHERE ",
    key!(),
    " AND r.fence = $4 AND r.owner_token = $5 AND r.status = 'in_progress' AND r.revision = 1
RETURNING ",
    micros!("created_at"),
    " AS now"
);

pub(in crate::postgres) const READ: &str = concat!(
    "SELECT ",
    micros!("clock_timestamp()"),
    " AS now, ",
    columns!(),
    " FROM idem.idempotency_requests r ",
    calls!(),
    " WHERE ",
    key!()
);

pub(in crate::postgres) const READ_BODY: &str = "SELECT body FROM idem.idempotency_bodies
    WHERE tenant_id = $1 AND operation_name = $2 AND idempotency_key = $3 AND day = date '1970-01-01' + $4::integer
    AND fence = $5";

pub(in crate::postgres) const TAKE_OVER: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, due_at) = (
        SELECT t, until, until FROM (SELECT t, ",
    after!("t", "$11"),
    " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
    status = 'in_progress', fence = r.fence + 1, owner_token = $10, revision = r.revision + 1,
    attempts = r.attempts + 1, ask_attempts = 0, next_attempt_at = NULL, expires_at = NULL, purge_at = NULL, parked_at = NULL
WHERE ",
    seen!("$12"),
    " AND CASE r.status WHEN 'in_progress' THEN r.locked_until <= clock_timestamp()
        WHEN 'failed_retryable' THEN r.next_attempt_at <= clock_timestamp() END
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

/// $10: `released`, `stranded` or `parked`. $11: when it may run, or is asked. $12, $13: window and metadata.
pub(in crate::postgres) const TEND: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (updated_at, status, locked_until, next_attempt_at, expires_at, purge_at, sweep_at, parked_at, due_at) = (
        SELECT t, status, NULL::timestamptz, next, expires, purge, least(r.sweep_at, expires),
            CASE WHEN $10 = 'parked' THEN coalesce(r.parked_at, t) END,
            CASE WHEN status <> 'failed_retryable' OR EXISTS (SELECT FROM idem.idempotency_calls c
                WHERE c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                AND c.idempotency_key = r.idempotency_key AND c.state = 'open') THEN next END
        FROM (
            SELECT t,
                CASE WHEN waits THEN r.status WHEN $10 = 'released' THEN 'failed_retryable'
                    ELSE 'unknown_requires_recovery' END AS status,
                CASE WHEN waits THEN r.next_attempt_at ELSE ",
    after!("t", "$11"),
    " END AS next,
                CASE WHEN waits THEN r.expires_at WHEN $10 = 'released' THEN ",
    after!("t", "$12"),
    " END AS expires,
                CASE WHEN waits THEN r.purge_at WHEN $10 = 'released' THEN ",
    after!("t", "($12::bigint + $13::bigint)"),
    " END AS purge
            FROM (SELECT clock_timestamp() AS t, r.status = 'failed_retryable' AND $10 = 'parked' AS waits
                WHERE r.fence > 0 OFFSET 0) AS clock
        ) AS dates),
    revision = r.revision + 1
WHERE ",
    seen!("$14"),
    " AND CASE r.status WHEN 'in_progress' THEN r.locked_until <= clock_timestamp()
        WHEN 'failed_retryable' THEN $10 <> 'released'
        WHEN 'unknown_requires_recovery' THEN
            $10 = 'parked' AND (r.locked_until IS NULL OR r.locked_until <= clock_timestamp())
        ELSE false END
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

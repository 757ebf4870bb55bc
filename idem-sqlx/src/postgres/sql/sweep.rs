//! The sweeper's statements.

/// One batch from the line: $1 rows at most, $2: tombstones go too. A row that is not to be cleaned yet gets its right
/// place in the line; one that a worker should look at and does not know of gets one in his.
macro_rules! sweep {
    ($place:literal) => {
        concat!(
            "WITH line AS MATERIALIZED (
    SELECT r.ctid AS row, r.tenant_id, r.operation_name, r.idempotency_key, r.status, r.expires_at, r.body_until,
        r.purge_at, r.next_attempt_at, r.locked_until, r.first_call_at IS NOT NULL AS called,
        r.response_body IS NOT NULL OR r.body_day IS NOT NULL AS has_body
    FROM idem.idempotency_requests r WHERE ",
            $place,
            " ORDER BY r.sweep_at LIMIT $1 FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT line.*, t, is_open,
        CASE WHEN status IN ('completed', 'failed_replayable') AND expires_at <= t THEN 'expired'
            WHEN status IN ('completed', 'failed_replayable') AND has_body AND body_until <= t THEN 'body'
            WHEN status = 'failed_retryable' AND expires_at <= t AND NOT is_open THEN 'expired'
            WHEN status = 'expired' AND purge_at <= t AND ($2 OR NOT called) THEN 'purged'
            ELSE 'kept' END AS verdict
    FROM (SELECT clock_timestamp() AS t OFFSET 0) AS clock, line, LATERAL (
        SELECT line.called AND EXISTS (SELECT FROM idem.idempotency_calls c
            WHERE c.tenant_id = line.tenant_id AND c.operation_name = line.operation_name
            AND c.idempotency_key = line.idempotency_key AND c.state = 'open') AS is_open) AS calls
), changed AS (
    UPDATE idem.idempotency_requests AS r SET
        sweep_at = CASE
            WHEN j.verdict = 'expired' THEN j.purge_at
            WHEN j.status IN ('completed', 'failed_replayable') AND j.verdict = 'kept' AND j.has_body
                THEN least(j.body_until, j.expires_at)
            WHEN j.status IN ('completed', 'failed_replayable') THEN j.expires_at
            WHEN j.status = 'failed_retryable' AND j.expires_at > j.t THEN j.expires_at
            WHEN j.status = 'expired' AND j.purge_at > j.t THEN j.purge_at
            WHEN j.status = 'expired' THEN 'infinity'
            ELSE j.t + interval '24 hours' END,
        due_at = CASE
            WHEN j.verdict = 'expired' THEN NULL
            WHEN j.status = 'in_progress' THEN j.locked_until
            WHEN j.status = 'failed_retryable' AND j.is_open THEN j.next_attempt_at
            WHEN j.status = 'unknown_requires_recovery' THEN greatest(j.next_attempt_at, j.locked_until) END,
        updated_at = CASE WHEN j.verdict = 'kept' THEN r.updated_at ELSE j.t END,
        revision = CASE WHEN j.verdict = 'kept' THEN r.revision ELSE r.revision + 1 END,
        response_body = CASE WHEN j.verdict = 'kept' THEN r.response_body END,
        body_day = CASE WHEN j.verdict = 'kept' THEN r.body_day END,
        status = CASE WHEN j.verdict = 'expired' THEN 'expired' ELSE r.status END,
        response_status = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.response_status END,
        response_headers = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.response_headers END,
        checkpoint = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.checkpoint END,
        checkpoint_version = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.checkpoint_version END,
        checkpoint_data = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.checkpoint_data END,
        next_attempt_at = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.next_attempt_at END,
        parked_at = CASE WHEN j.verdict = 'expired' THEN NULL ELSE r.parked_at END
    FROM judged j WHERE r.ctid = j.row AND j.verdict <> 'purged'
    RETURNING j.verdict, j.tenant_id, j.operation_name, j.idempotency_key, j.called
), emptied AS (
    UPDATE idem.idempotency_calls AS c SET outcome = ''
    FROM changed WHERE changed.verdict = 'expired' AND changed.called AND c.tenant_id = changed.tenant_id
        AND c.operation_name = changed.operation_name AND c.idempotency_key = changed.idempotency_key
        AND c.state IN ('applied', 'rejected')
), purged AS (
    DELETE FROM idem.idempotency_requests AS r USING judged j WHERE r.ctid = j.row AND j.verdict = 'purged'
    RETURNING j.tenant_id, j.operation_name, j.idempotency_key, j.called
), forgotten AS (
    DELETE FROM idem.idempotency_calls AS c USING purged WHERE purged.called AND c.tenant_id = purged.tenant_id
        AND c.operation_name = purged.operation_name AND c.idempotency_key = purged.idempotency_key
), unlearned AS (
    DELETE FROM idem.idempotency_evidence AS e USING purged WHERE purged.called AND e.tenant_id = purged.tenant_id
        AND e.operation_name = purged.operation_name AND e.idempotency_key = purged.idempotency_key
)
SELECT (SELECT count(*) FROM line) AS looked_at,
    (SELECT count(*) FROM changed WHERE verdict = 'body') AS bodies,
    (SELECT count(*) FROM changed WHERE verdict = 'expired') AS expired,
    (SELECT count(*) FROM purged) AS purged"
        )
    };
}

pub(in crate::postgres) const SWEEP: &str = sweep!("r.sweep_at <= statement_timestamp()");

/// Tombstones wait at the end of the line, for somebody who wants them gone.
pub(in crate::postgres) const SWEEP_TOMBSTONES: &str = sweep!("r.sweep_at = 'infinity' AND r.status = 'expired'");

/// Drops the days that are over and makes those to come.
pub(in crate::postgres) const TURN_DAYS: &str = "
SELECT idem.drop_body_days((clock_timestamp() AT TIME ZONE 'UTC')::date)::bigint AS dropped,
    (SELECT count(*) FILTER (WHERE idem.make_body_day((clock_timestamp() AT TIME ZONE 'UTC')::date + ahead))
        FROM generate_series(0, 2) AS ahead) AS made";

/// Bodies of days that have no partition of their own.
pub(in crate::postgres) const SWEEP_BODIES: &str = "
DELETE FROM idem.idempotency_bodies_default WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idem.idempotency_bodies_default
    WHERE day < (statement_timestamp() AT TIME ZONE 'UTC')::date LIMIT $1 FOR UPDATE SKIP LOCKED))";

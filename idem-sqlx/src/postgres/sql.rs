//! The statements, as constants. Each is one autocommit statement: nothing on these paths is ever half done.
//!
//! Clocks: `clock_timestamp()`, never `now()`, which stands still while a statement waits for a lock and would grant a
//! lease that is half over. A statement that writes several dates reads the clock once for each row, in a sub-select
//! that names the row (`WHERE r.fence > 0`): PostgreSQL evaluates it anew after a lock wait.
//!
//! Spans come in microseconds, at most 8000 years; no date goes beyond the year 9999.

/// `now + span`, for a parameter of microseconds.
macro_rules! after {
    ($now:literal, $span:literal) => {
        concat!("least(", $now, " + ", $span, " * interval '1 microsecond', timestamptz '9999-12-31 23:59:59+00')")
    };
}

/// An instant as microseconds since 1970, as the shared row mapping counts it.
macro_rules! micros {
    ($at:literal) => {
        concat!("(extract(epoch FROM ", $at, ") * 1000000)::bigint")
    };
}

/// The columns of a record and one of its calls, under the names of the shared row mapping.
macro_rules! columns {
    () => {
        concat!(
            "r.tenant_id, r.operation_name, r.idempotency_key, r.request_hash, r.hash_form::bigint AS hash_form, ",
            "r.hash_version, r.status, r.fence, uuid_send(r.owner_token) AS owner_token, r.revision, ",
            "r.response_status::bigint AS response_status, r.response_headers, r.response_body, ",
            "r.resource_type, r.resource_id, r.attempts::bigint AS attempts, r.ask_attempts::bigint AS ask_attempts, ",
            "r.checkpoint, r.checkpoint_version, r.checkpoint_data, ",
            "(r.body_day - date '1970-01-01')::bigint AS body_day, ",
            micros!("r.locked_until"),
            " AS locked_until, ",
            micros!("r.next_attempt_at"),
            " AS next_attempt_at, ",
            micros!("r.parked_at"),
            " AS parked_at, ",
            micros!("r.created_at"),
            " AS created_at, ",
            micros!("r.finished_at"),
            " AS finished_at, ",
            micros!("r.expires_at"),
            " AS expires_at, ",
            micros!("r.body_until"),
            " AS body_until, ",
            micros!("r.purge_at"),
            " AS purge_at, ",
            "c.call_id, c.call_name, c.class, c.class_span, c.downstream_key, c.state, c.outcome, ",
            micros!("c.opened_at"),
            " AS opened_at"
        )
    };
}

/// The calls of `r`, looked for only where there are some: a NULL key ends the look-up before it begins.
macro_rules! calls {
    () => {
        "LEFT JOIN idem.idempotency_calls c
            ON c.tenant_id = CASE WHEN r.first_call_at IS NOT NULL THEN r.tenant_id END
            AND c.operation_name = r.operation_name AND c.idempotency_key = r.idempotency_key"
    };
}

macro_rules! key {
    () => {
        "r.tenant_id = $1 AND r.operation_name = $2 AND r.idempotency_key = $3"
    };
}

/// $4 to $9: what was seen. `$owner`: the attempt that owned it.
macro_rules! seen {
    ($owner:literal) => {
        concat!(
            key!(),
            " AND r.fence = $4 AND r.revision = $5 AND r.request_hash = $6 AND r.hash_form = $7
            AND r.hash_version = $8 AND r.status = $9 AND r.owner_token = ",
            $owner
        )
    };
}

/// What every end sets. $4: fence. $7: status. $8 to $10: the answer. $11: a body for the side table. $12 to $14: window,
/// body, metadata. $15: the wait before the next attempt or question. $18: keep `parked_at`. $19: park.
macro_rules! end {
    ($next_fence:literal) => {
        concat!(
            "UPDATE idem.idempotency_requests AS r SET
    (updated_at, finished_at, expires_at, body_until, purge_at, next_attempt_at, sweep_at, due_at, parked_at,
        body_day) = (
        SELECT t, CASE WHEN $8::integer IS NOT NULL THEN t END, expires, body, purge, next,
            least(r.sweep_at, body, expires),
            CASE WHEN $7 = 'unknown_requires_recovery' OR ($7 = 'failed_retryable' AND r.first_call_at IS NOT NULL
                AND EXISTS (SELECT FROM idem.idempotency_calls c
                    WHERE c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                    AND c.idempotency_key = r.idempotency_key AND c.state = 'open'
                    AND c.call_name <> ALL ($20::text[]))) THEN next END,
            CASE WHEN $18 THEN coalesce(r.parked_at, CASE WHEN $19 THEN t END) END,
            CASE WHEN $11::bytea IS NOT NULL THEN (body AT TIME ZONE 'UTC')::date END
        FROM (
            SELECT t,
                CASE WHEN $12::bigint IS NOT NULL THEN ",
            after!("t", "$12"),
            " END AS expires,
                CASE WHEN $13::bigint IS NOT NULL THEN ",
            after!("t", "least($12::bigint, $13::bigint)"),
            " END AS body,
                CASE WHEN $14::bigint IS NOT NULL THEN ",
            after!("t", "($12::bigint + $14::bigint)"),
            " END AS purge,
                CASE WHEN $15::bigint IS NOT NULL THEN ",
            after!("t", "$15"),
            " END AS next
            FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock
        ) AS dates),
    status = $7, fence = r.fence + ",
            $next_fence,
            ", revision = r.revision + 1, locked_until = NULL, response_status = $8, response_headers = $9,
    response_body = $10, resource_type = coalesce($16, r.resource_type), resource_id = coalesce($17, r.resource_id)
WHERE ",
            key!()
        )
    };
}

/// The owner's guard of an end. $5: token. $6: the status that it ends; an unknown record that nobody asks about has no
/// owner.
macro_rules! owner {
    () => {
        " AND r.fence = $4 AND r.owner_token = $5 AND r.status = $6
    AND (r.status = 'in_progress' OR r.locked_until IS NOT NULL)"
    };
}

/// What goes with an end: $20 to $22 close calls, $11 goes to the side table.
macro_rules! with_end {
    () => {
        concat!(
            " RETURNING r.tenant_id, r.operation_name, r.idempotency_key, r.fence, r.updated_at, r.body_day
), closed AS (
    UPDATE idem.idempotency_calls AS c
    SET state = done.state, outcome = done.outcome, fence = ended.fence, closed_at = ended.updated_at
    FROM ended, unnest($20::text[], $21::text[], $22::bytea[]) AS done (name, state, outcome)
    WHERE c.tenant_id = ended.tenant_id AND c.operation_name = ended.operation_name
        AND c.idempotency_key = ended.idempotency_key AND c.call_name = done.name AND c.state = 'open'
), kept AS (
    INSERT INTO idem.idempotency_bodies (day, tenant_id, operation_name, idempotency_key, fence, body)
    SELECT body_day, tenant_id, operation_name, idempotency_key, fence, $11 FROM ended WHERE $11::bytea IS NOT NULL
    ON CONFLICT (day, tenant_id, operation_name, idempotency_key)
        DO UPDATE SET fence = excluded.fence, body = excluded.body
)"
        )
    };
}

mod claim;
mod outbox;
mod own;
mod recover;
mod sweep;

pub(super) use claim::*;
pub(super) use outbox::*;
pub(super) use own::*;
pub(super) use recover::*;
pub(super) use sweep::*;

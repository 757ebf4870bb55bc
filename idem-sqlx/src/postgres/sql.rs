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
            "r.checkpoint, r.checkpoint_data, ",
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
            "c.call_name, c.class, c.class_span, c.downstream_key, c.state, c.outcome, ",
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

/// $4 to $9: what was seen.
macro_rules! seen {
    () => {
        concat!(
            key!(),
            " AND r.fence = $4 AND r.revision = $5 AND r.request_hash = $6 AND r.hash_form = $7
            AND r.hash_version = $8 AND r.status = $9"
        )
    };
}

/// Insert, and on conflict the row, in one round trip. No row at all (`claimed_at` and `tenant_id` NULL): a rival
/// committed in between; that is nobody's record yet.
pub(super) const CLAIM: &str = concat!(
    "WITH claimed AS (
    INSERT INTO idem.idempotency_requests (
        tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token,
        revision, attempts, locked_until, created_at, updated_at, sweep_at)
    SELECT $1, $2, $3, $4, $5, $6, 'in_progress', 1, $7, 1, 1, ",
    after!("t", "$8"),
    ", t, t, t + interval '24 hours'
    FROM (SELECT clock_timestamp() AS t OFFSET 0) AS clock
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
    calls!(),
    " ORDER BY c.call_id"
);

pub(super) const READ: &str = concat!(
    "SELECT ",
    micros!("clock_timestamp()"),
    " AS now, ",
    columns!(),
    " FROM idem.idempotency_requests r ",
    calls!(),
    " WHERE ",
    key!(),
    " ORDER BY c.call_id"
);

pub(super) const READ_BODY: &str = "SELECT body FROM idem.idempotency_bodies
    WHERE tenant_id = $1 AND operation_name = $2 AND idempotency_key = $3 AND day = date '1970-01-01' + $4::integer
    AND fence = $5";

pub(super) const TAKE_OVER: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, due_at) = (
        SELECT t, until, until FROM (SELECT t, ",
    after!("t", "$11"),
    " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
    status = 'in_progress', fence = r.fence + 1, owner_token = $10, revision = r.revision + 1,
    attempts = r.attempts + 1, next_attempt_at = NULL, expires_at = NULL, purge_at = NULL, parked_at = NULL
WHERE ",
    seen!(),
    " AND CASE r.status WHEN 'in_progress' THEN r.locked_until <= clock_timestamp()
        WHEN 'failed_retryable' THEN r.next_attempt_at <= clock_timestamp() END
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

pub(super) const TAKE_TO_ASK: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, due_at) = (
        SELECT t, until, until FROM (SELECT t, ",
    after!("t", "$11"),
    " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
    fence = r.fence + 1, owner_token = $10, revision = r.revision + 1, ask_attempts = r.ask_attempts + 1
WHERE ",
    seen!(),
    " AND r.status = 'unknown_requires_recovery' AND r.next_attempt_at <= clock_timestamp()
    AND (r.locked_until IS NULL OR r.locked_until <= clock_timestamp())
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

/// $10: `released`, `stranded` or `parked`. $11: when it may run, or is asked. $12, $13: window and metadata.
pub(super) const TEND: &str = concat!(
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
    seen!(),
    " AND CASE r.status WHEN 'in_progress' THEN r.locked_until <= clock_timestamp()
        WHEN 'failed_retryable' THEN $10 <> 'released'
        WHEN 'unknown_requires_recovery' THEN $10 = 'parked' ELSE false END
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

macro_rules! step {
    () => {
        concat!(
            "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, first_call_at) = (
        SELECT t, ",
            after!("t", "$6"),
            ", CASE WHEN $7 THEN coalesce(r.first_call_at, t) ELSE r.first_call_at END
        FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock),
    revision = r.revision + 1, resource_type = coalesce($8, r.resource_type),
    resource_id = coalesce($9, r.resource_id), checkpoint = coalesce($10, r.checkpoint),
    checkpoint_data = CASE WHEN $10::text IS NULL THEN r.checkpoint_data ELSE $11 END
WHERE ",
            key!(),
            " AND r.fence = $4 AND r.owner_token = $5 AND r.status = 'in_progress'"
        )
    };
}

/// A step without calls.
pub(super) const STEP: &str = concat!(step!(), " RETURNING ", micros!("updated_at"), " AS now");

/// A step with calls: $12 to $14 close some, $15 to $18 announce one, $19 and $20 say how the announced one is closed
/// in the same step. The record's row is locked first, so all that writes the calls of one record stands in a line.
pub(super) const STEP_WITH_CALLS: &str = concat!(
    "WITH owned AS (",
    step!(),
    " RETURNING r.tenant_id, r.operation_name, r.idempotency_key, r.fence, r.updated_at
), closed AS (
    UPDATE idem.idempotency_calls AS c
    SET state = done.state, outcome = done.outcome, fence = owned.fence, closed_at = owned.updated_at
    FROM owned, unnest($12::text[], $13::text[], $14::bytea[]) AS done (name, state, outcome)
    WHERE c.tenant_id = owned.tenant_id AND c.operation_name = owned.operation_name
        AND c.idempotency_key = owned.idempotency_key AND c.call_name = done.name AND c.state = 'open'
), opened AS (
    INSERT INTO idem.idempotency_calls AS c (
        tenant_id, operation_name, idempotency_key, call_name, class, class_span, downstream_key, state, fence, opened_at)
    SELECT tenant_id, operation_name, idempotency_key, $15, $16, $17, $18, 'open', fence, updated_at
    FROM owned WHERE $15::text IS NOT NULL
    ON CONFLICT (tenant_id, operation_name, idempotency_key, call_name) DO UPDATE SET
        state = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN $19 ELSE 'open' END,
        outcome = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN $20::bytea END,
        closed_at = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN excluded.opened_at END,
        class = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN c.class ELSE excluded.class END,
        class_span = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN c.class_span ELSE excluded.class_span END,
        opened_at = CASE WHEN c.state = 'open' AND $19 <> 'withdrawn' THEN c.opened_at ELSE excluded.opened_at END,
        fence = excluded.fence
    WHERE c.state = 'withdrawn' OR (c.state = 'open' AND $19::text IS NOT NULL)
)
SELECT ",
    micros!("updated_at"),
    " AS now FROM owned"
);

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

/// The owner's guard of an end. $5: token. $6: the status that it ends.
macro_rules! owner {
    () => {
        " AND r.fence = $4 AND r.owner_token = $5 AND r.status = $6"
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

/// The ordinary end: nothing but the row.
pub(super) const END: &str = concat!(end!("0"), owner!(), " RETURNING ", micros!("updated_at"), " AS now");

/// An end with calls to close, or a body for the side table.
pub(super) const END_WITH_MORE: &str =
    concat!("WITH ended AS (", end!("0"), owner!(), with_end!(), " SELECT ", micros!("updated_at"), " AS now FROM ended");

/// A person's verdict. $5: revision. $6: hash, $23 and $24: its form and version. $25: the status seen. $26 to $28: who,
/// what and why.
pub(super) const RESOLVE: &str = concat!(
    "WITH ended AS (",
    end!("1"),
    " AND r.fence = $4 AND r.revision = $5 AND r.request_hash = $6 AND r.hash_form = $23 AND r.hash_version = $24
    AND r.status = $25 AND r.status IN ('failed_retryable', 'unknown_requires_recovery') AND r.parked_at IS NOT NULL",
    with_end!(),
    ", audited AS (
    INSERT INTO idem.idempotency_audit (acted_at, tenant_id, operation_name, idempotency_key, actor, action, reason)
    SELECT ended.updated_at, $29, $30, $31, $26, $27, $28 FROM ended
) SELECT ",
    micros!("updated_at"),
    " AS now FROM ended"
);

/// All live claims in one statement. A row that its owner's own transaction has locked is not waited for: nobody can
/// take it over meanwhile.
pub(super) const BEAT: &str = concat!(
    "WITH live AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::bigint[])
        WITH ORDINALITY AS live (tenant_id, operation_name, idempotency_key, fence, owner_token, lease, number)
), locked AS MATERIALIZED (
    SELECT r.ctid AS row, live.lease
    FROM live JOIN idem.idempotency_requests r USING (tenant_id, operation_name, idempotency_key, fence, owner_token)
    WHERE r.status = 'in_progress'
    FOR NO KEY UPDATE OF r SKIP LOCKED
), renewed AS (
    UPDATE idem.idempotency_requests AS r
    SET (updated_at, locked_until) = (SELECT t, ",
    after!("t", "locked.lease"),
    " FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock),
        revision = r.revision + 1
    FROM locked WHERE r.ctid = locked.row
)
SELECT EXISTS (
    SELECT FROM idem.idempotency_requests r
    WHERE r.tenant_id = live.tenant_id AND r.operation_name = live.operation_name
        AND r.idempotency_key = live.idempotency_key AND r.fence = live.fence AND r.owner_token = live.owner_token
        AND r.status = 'in_progress') AS owns
FROM live ORDER BY live.number"
);

//! What an owner writes.

macro_rules! step {
    () => {
        concat!(
            "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, due_at, first_call_at) = (
        SELECT t, until, CASE WHEN r.due_at IS NOT NULL THEN until END,
            CASE WHEN $7 THEN coalesce(r.first_call_at, t) ELSE r.first_call_at END
        FROM (SELECT t, ",
            after!("t", "$6"),
            " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
    revision = r.revision + 1, resource_type = coalesce($8, r.resource_type),
    resource_id = coalesce($9, r.resource_id), checkpoint = coalesce($10, r.checkpoint),
    checkpoint_version = CASE WHEN $10::text IS NULL THEN r.checkpoint_version ELSE $12 END,
    checkpoint_data = CASE WHEN $10::text IS NULL THEN r.checkpoint_data ELSE $11 END
WHERE ",
            key!(),
            " AND r.fence = $4 AND r.owner_token = $5 AND r.status = 'in_progress'"
        )
    };
}

/// A step without calls.
pub(in crate::postgres) const STEP: &str = concat!(step!(), " RETURNING ", micros!("updated_at"), " AS now");

/// A step with calls: $13 to $15 close some, $16 to $19 announce one, $20 and $21 say how the announced one is closed
/// in the same step. The record's row is locked first, so all that writes the calls of one record stands in a line.
pub(in crate::postgres) const STEP_WITH_CALLS: &str = concat!(
    "WITH owned AS (",
    step!(),
    " RETURNING r.tenant_id, r.operation_name, r.idempotency_key, r.fence, r.updated_at
), closed AS (
    UPDATE idem.idempotency_calls AS c
    SET state = done.state, outcome = done.outcome, fence = owned.fence, closed_at = owned.updated_at
    FROM owned, unnest($13::text[], $14::text[], $15::bytea[]) AS done (name, state, outcome)
    WHERE c.tenant_id = owned.tenant_id AND c.operation_name = owned.operation_name
        AND c.idempotency_key = owned.idempotency_key AND c.call_name = done.name AND c.state = 'open'
), opened AS (
    INSERT INTO idem.idempotency_calls AS c (
        tenant_id, operation_name, idempotency_key, call_name, class, class_span, downstream_key, state, fence, opened_at)
    SELECT tenant_id, operation_name, idempotency_key, $16, $17, $18, $19, 'open', fence, updated_at
    FROM owned WHERE $16::text IS NOT NULL
    ON CONFLICT (tenant_id, operation_name, idempotency_key, call_name) DO UPDATE SET
        state = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN $20 ELSE 'open' END,
        outcome = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN $21::bytea END,
        closed_at = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN excluded.opened_at END,
        class = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN c.class ELSE excluded.class END,
        class_span = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN c.class_span ELSE excluded.class_span END,
        opened_at = CASE WHEN c.state = 'open' AND $20 <> 'withdrawn' THEN c.opened_at ELSE excluded.opened_at END,
        fence = excluded.fence
    WHERE c.state = 'withdrawn' OR (c.state = 'open' AND $20::text IS NOT NULL)
)
SELECT ",
    micros!("updated_at"),
    " AS now FROM owned"
);

/// The ordinary end: nothing but the row.
pub(in crate::postgres) const END: &str = concat!(end!("0"), owner!(), " RETURNING ", micros!("updated_at"), " AS now");

/// An end with calls to close, or a body for the side table.
pub(in crate::postgres) const END_WITH_MORE: &str = concat!(
    "WITH ended AS (",
    end!("0"),
    owner!(),
    with_end!(),
    " SELECT ",
    micros!("updated_at"),
    " AS now FROM ended"
);

/// Whether each of `live` owns its record.
macro_rules! owns {
    () => {
        "SELECT EXISTS (
    SELECT FROM idem.idempotency_requests r
    WHERE r.tenant_id = live.tenant_id AND r.operation_name = live.operation_name
        AND r.idempotency_key = live.idempotency_key AND r.fence = live.fence AND r.owner_token = live.owner_token
        AND r.status = 'in_progress') AS owns
FROM live ORDER BY live.number"
    };
}

/// All live claims in one statement. A row that its owner's own transaction has locked is not waited for: nobody can
/// take it over meanwhile.
pub(in crate::postgres) const BEAT: &str = concat!(
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
    SET (updated_at, locked_until, due_at) = (
        SELECT t, until, CASE WHEN r.due_at IS NOT NULL THEN until END FROM (SELECT t, ",
    after!("t", "locked.lease"),
    " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
        revision = r.revision + 1
    FROM locked WHERE r.ctid = locked.row
)
",
    owns!()
);

/// The same without renewing any.
pub(in crate::postgres) const OWNS: &str = concat!(
    "WITH live AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[])
        WITH ORDINALITY AS live (tenant_id, operation_name, idempotency_key, fence, owner_token, number)
)
",
    owns!()
);

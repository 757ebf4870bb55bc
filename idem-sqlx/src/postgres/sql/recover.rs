//! What a worker and a person write.

pub(in crate::postgres) const TAKE_TO_ASK: &str = concat!(
    "UPDATE idem.idempotency_requests AS r SET
    (updated_at, locked_until, due_at) = (
        SELECT t, until, until FROM (SELECT t, ",
    after!("t", "$11"),
    " AS until FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock) AS lease),
    fence = r.fence + 1, owner_token = $10, revision = r.revision + 1, ask_attempts = r.ask_attempts + 1
WHERE ",
    seen!("$12"),
    " AND r.status = 'unknown_requires_recovery' AND r.next_attempt_at <= clock_timestamp()
    AND (r.locked_until IS NULL OR r.locked_until <= clock_timestamp())
RETURNING ",
    micros!("updated_at"),
    " AS now"
);

/// A person's verdict. $5: revision. $6: hash, $23 and $24: its form and version. $25: the status seen, $32: the
/// owner. $26 to $28: who, what and why.
pub(in crate::postgres) const RESOLVE: &str = concat!(
    "WITH ended AS (",
    end!("1"),
    " AND r.fence = $4 AND r.revision = $5 AND r.request_hash = $6 AND r.hash_form = $23 AND r.hash_version = $24
    AND r.status = $25 AND r.status IN ('failed_retryable', 'unknown_requires_recovery') AND r.parked_at IS NOT NULL
    AND r.owner_token = $32",
    with_end!(),
    ", audited AS (
    INSERT INTO idem.idempotency_audit (acted_at, tenant_id, operation_name, idempotency_key, actor, action, reason)
    SELECT ended.updated_at, $29, $30, $31, $26, $27, $28 FROM ended
) SELECT ",
    micros!("updated_at"),
    " AS now FROM ended"
);

/// One walk along the sweeper's line, in which a record that was never taken over stands a day after its insert: those
/// that are still in progress `$1` later get their place among the due. $2: how many entries at most.
///
/// It goes no nearer to now than ten seconds, so that a claim which is committed a little after its date is not passed;
/// and not past a record that it could not lock. Gives whether there is more.
pub(in crate::postgres) const ADOPT: &str = "
WITH line AS MATERIALIZED (
    SELECT at FROM idem.idempotency_progress WHERE name = 'due' FOR UPDATE SKIP LOCKED
), walked AS MATERIALIZED (
    SELECT r.sweep_at, CASE WHEN r.status = 'in_progress' AND r.due_at IS NULL THEN r.row END AS row
    FROM line, LATERAL (
        SELECT q.ctid AS row, q.sweep_at, q.status, q.due_at FROM idem.idempotency_requests q
        WHERE q.sweep_at > line.at
            AND q.sweep_at <= statement_timestamp() + interval '24 hours' - $1 * interval '1 microsecond'
        ORDER BY q.sweep_at LIMIT $2) AS r
), found AS MATERIALIZED (
    SELECT r.ctid AS row FROM idem.idempotency_requests r
    WHERE r.ctid = ANY (ARRAY(SELECT row FROM walked WHERE row IS NOT NULL))
        AND r.status = 'in_progress' AND r.due_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
), adopted AS (
    UPDATE idem.idempotency_requests AS r SET due_at = r.locked_until
    FROM found WHERE r.ctid = found.row RETURNING found.row
), reached AS (
    SELECT count(*) = $2 AS more, least(
        CASE WHEN count(*) = $2 THEN max(sweep_at) - interval '1 microsecond' ELSE 'infinity' END,
        min(sweep_at) FILTER (WHERE row IS NOT NULL AND row NOT IN (SELECT row FROM adopted))
            - interval '1 microsecond',
        statement_timestamp() + interval '24 hours' - greatest($1, 10000000) * interval '1 microsecond') AS at
    FROM walked
)
UPDATE idem.idempotency_progress AS p SET at = greatest(p.at, reached.at)
FROM line, reached WHERE p.name = 'due' RETURNING reached.more";

/// The due ones after a place in their order. $1: grace. $2: how many. $3 to $6: the place, or NULLs.
pub(in crate::postgres) const DUE: &str = concat!(
    "SELECT ",
    micros!("clock_timestamp()"),
    " AS now, ",
    micros!("r.due_at"),
    " AS due_at, ",
    columns!(),
    " FROM (
    SELECT q.tenant_id, q.operation_name, q.idempotency_key FROM idem.idempotency_requests q
    WHERE q.due_at IS NOT NULL AND q.due_at <= statement_timestamp()
        AND q.due_at >= coalesce(timestamptz 'epoch' + $3::bigint * interval '1 microsecond', '-infinity')
        AND ($3::bigint IS NULL OR (q.due_at, q.tenant_id, q.operation_name, q.idempotency_key)
            > (timestamptz 'epoch' + $3::bigint * interval '1 microsecond', $4::text, $5::text, $6::text))
        AND (q.status = 'unknown_requires_recovery'
            OR q.due_at <= statement_timestamp() - $1 * interval '1 microsecond')
    ORDER BY q.due_at, q.tenant_id, q.operation_name, q.idempotency_key LIMIT $2
) AS due
JOIN idem.idempotency_requests r USING (tenant_id, operation_name, idempotency_key) ",
    calls!(),
    " WHERE r.due_at IS NOT NULL
ORDER BY r.due_at, r.tenant_id, r.operation_name, r.idempotency_key, c.call_id"
);

/// The unsettled ones after a place in their order. $1: how many. $2 to $5: the place, or NULLs. A record in progress
/// that no worker has walked past is not among the due: it is looked for where the walk goes on.
pub(in crate::postgres) const UNSETTLED: &str = concat!(
    "SELECT ",
    micros!("clock_timestamp()"),
    " AS now, ",
    micros!("coalesce(r.due_at, r.locked_until)"),
    " AS due_at, ",
    columns!(),
    " FROM (
    SELECT u.tenant_id, u.operation_name, u.idempotency_key FROM (
        (SELECT q.due_at AS at, q.tenant_id, q.operation_name, q.idempotency_key FROM idem.idempotency_requests q
        WHERE q.due_at IS NOT NULL
            AND q.due_at >= coalesce(timestamptz 'epoch' + $2::bigint * interval '1 microsecond', '-infinity')
            AND ($2::bigint IS NULL OR (q.due_at, q.tenant_id, q.operation_name, q.idempotency_key)
                > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::text, $4::text, $5::text))
        ORDER BY q.due_at, q.tenant_id, q.operation_name, q.idempotency_key LIMIT $1)
        UNION ALL
        (SELECT q.locked_until, q.tenant_id, q.operation_name, q.idempotency_key
        FROM idem.idempotency_progress line
        JOIN idem.idempotency_requests q
            ON q.sweep_at > line.at AND q.sweep_at <= statement_timestamp() + interval '24 hours'
        WHERE line.name = 'due' AND q.status = 'in_progress' AND q.due_at IS NULL
            AND ($2::bigint IS NULL OR (q.locked_until, q.tenant_id, q.operation_name, q.idempotency_key)
                > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::text, $4::text, $5::text))
        ORDER BY q.locked_until, q.tenant_id, q.operation_name, q.idempotency_key LIMIT $1)
    ) AS u
    ORDER BY u.at, u.tenant_id, u.operation_name, u.idempotency_key LIMIT $1
) AS page
JOIN idem.idempotency_requests r USING (tenant_id, operation_name, idempotency_key) ",
    calls!(),
    " WHERE r.due_at IS NOT NULL OR r.status = 'in_progress'
ORDER BY coalesce(r.due_at, r.locked_until), r.tenant_id, r.operation_name, r.idempotency_key, c.call_id"
);

/// How long those have waited that wait longest, along the index on `due_at`.
pub(in crate::postgres) const OLDEST: &str = concat!(
    "SELECT ",
    micros!(
        "(clock_timestamp() - min(created_at) FILTER (WHERE status = 'in_progress' AND due_at <= clock_timestamp()))"
    ),
    " AS abandoned, ",
    micros!(
        "(clock_timestamp() - min(created_at) FILTER (WHERE status = 'unknown_requires_recovery' AND parked_at IS NULL))"
    ),
    " AS unknown, ",
    micros!("(clock_timestamp() - min(created_at) FILTER (WHERE parked_at IS NOT NULL))"),
    " AS parked FROM idem.idempotency_requests WHERE due_at IS NOT NULL"
);

/// Keeps what was learned, and makes an unknown record due at once. Gives the record's key.
pub(in crate::postgres) const LEARN: &str = "
WITH known AS (
    SELECT tenant_id, operation_name, idempotency_key FROM idem.idempotency_calls WHERE downstream_key = $1
), woken AS (
    UPDATE idem.idempotency_requests AS r SET
        (updated_at, next_attempt_at, due_at) = (
            SELECT t, t, greatest(t, r.locked_until)
            FROM (SELECT clock_timestamp() AS t WHERE r.fence > 0 OFFSET 0) AS clock),
        revision = r.revision + 1
    FROM known WHERE r.tenant_id = known.tenant_id AND r.operation_name = known.operation_name
        AND r.idempotency_key = known.idempotency_key AND r.status = 'unknown_requires_recovery'
        AND r.next_attempt_at > clock_timestamp()
), kept AS (
    INSERT INTO idem.idempotency_evidence
        (received_at, tenant_id, operation_name, idempotency_key, downstream_key, source, state, outcome)
    SELECT clock_timestamp(), tenant_id, operation_name, idempotency_key, $1, $2, $3, $4 FROM known
)
SELECT tenant_id, operation_name, idempotency_key FROM known";

pub(in crate::postgres) const LEARNED: &str = concat!(
    "SELECT downstream_key, source, state, outcome, ",
    micros!("received_at"),
    " AS at FROM idem.idempotency_evidence
WHERE tenant_id = $1 AND operation_name = $2 AND idempotency_key = $3 ORDER BY evidence_id"
);

pub(in crate::postgres) const CONTRACTS: &str =
    "SELECT contract FROM idem.idempotency_contracts WHERE operation_name = $1 AND version = $2 ORDER BY number";

pub(in crate::postgres) const ADD_CONTRACT: &str = "
INSERT INTO idem.idempotency_contracts (operation_name, version, number, contract, first_seen_at)
SELECT $1, $2, $3, $4, clock_timestamp()
WHERE $3 = (SELECT count(*) FROM idem.idempotency_contracts WHERE operation_name = $1 AND version = $2)
ON CONFLICT (operation_name, version, number) DO NOTHING RETURNING number";

/// No row: a rival settled it in between.
pub(in crate::postgres) const SETTLE_SETTING: &str = "
WITH settled AS (
    INSERT INTO idem.idempotency_settings (name, value, updated_at) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (name) DO NOTHING RETURNING value
)
SELECT value FROM settled UNION ALL SELECT value FROM idem.idempotency_settings WHERE name = $1";

pub(in crate::postgres) const SETTINGS: &str = "
SELECT name, value FROM idem.idempotency_settings ORDER BY name";

pub(in crate::postgres) const AUDIT: &str = "
INSERT INTO idem.idempotency_audit (acted_at, tenant_id, operation_name, idempotency_key, actor, action, reason)
VALUES (clock_timestamp(), $1, $2, $3, $4, $5, $6)";

pub(in crate::postgres) const AUDITED: &str = concat!(
    "SELECT tenant_id, operation_name, idempotency_key, action, actor, reason, ",
    micros!("acted_at"),
    " AS at FROM idem.idempotency_audit
WHERE tenant_id = $1 AND operation_name = $2 AND idempotency_key = $3 ORDER BY audit_id"
);

pub(in crate::postgres) const SIGN: &str = "
INSERT INTO idem.idempotency_progress (name, at) VALUES ('worker', clock_timestamp())
ON CONFLICT (name) DO UPDATE SET at = excluded.at";

pub(in crate::postgres) const SILENCE: &str = concat!(
    "SELECT ",
    micros!("(clock_timestamp() - at)"),
    " AS silence FROM idem.idempotency_progress WHERE name = 'worker'"
);

/// What a caller's transaction is: whose database, how isolated, how durable.
pub(in crate::postgres) const JOINED: &str = "
SELECT (SELECT id FROM idem.idempotency_store) AS id, current_database()::text AS name,
    current_setting('transaction_isolation') = 'read committed' AS sees,
    current_setting('synchronous_commit') = 'off' AS forgets";

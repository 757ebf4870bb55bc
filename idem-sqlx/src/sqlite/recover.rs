//! What becomes of records that nobody runs, and what is learned about them, in SQL.

use std::time::Duration;

use idem_core::store::{
    Answered, AnsweredEnd, AuditEntry, Dated, Evidence, Fenced, Found, Guarded, Mark, Oldest, Seen, TakeOver, Tended,
    Verdicted,
};
use idem_core::{Ownership, Record, Scope};
use sqlx::{Executor, Row, Sqlite, SqliteConnection};

use crate::error::Trouble;
use crate::row::{self, Place, state_columns};
use crate::sqlite::keep;
use crate::sqlite::write::{
    TICK, close, end, ended, fenced, guarded, now, owned, record_columns, resource, scoped, seen, seen_owner, write_end,
};

/// T9, T9w, T9f, T13
pub(super) async fn tend(tx: &mut SqliteConnection, what: &Seen, to: &Tended) -> Result<Guarded, Trouble> {
    let now = now();
    let at = |span: Duration| TICK.count_after(now, span);
    let query = |sql| seen(scoped(sql, &what.scope).bind(TICK.count(now)), what);
    let tended = match to {
        Tended::Released { retry_in, keep } => query(RELEASE)?
            .bind(at(*retry_in))
            .bind(at(keep.window))
            .bind(TICK.count_after(idem_core::store::after(now, keep.window), keep.metadata)),
        Tended::Stranded { ask_in } => query(STRAND)?.bind(at(*ask_in)),
        Tended::Parked { ask_in } => query(PARK)?.bind(at(*ask_in)),
    };
    let rows = seen_owner(tended, what).execute(&mut *tx).await?.rows_affected();
    guarded(tx, rows, &what.scope, now).await
}

/// T10
pub(super) async fn take_to_ask(tx: &mut SqliteConnection, take: &TakeOver) -> Result<Guarded, Trouble> {
    let now = now();
    let taken = seen(scoped(TAKE_TO_ASK, &take.seen.scope).bind(TICK.count(now)), &take.seen)?
        .bind(&take.owner.as_bytes()[..])
        .bind(TICK.count_after(now, take.lease));
    let taken = seen_owner(taken, &take.seen).execute(&mut *tx).await?;
    guarded(tx, taken.rows_affected(), &take.seen.scope, now).await
}

/// T11 to T13
pub(super) async fn answer(
    tx: &mut SqliteConnection,
    owner: &Ownership,
    answered: &Answered,
) -> Result<Fenced, Trouble> {
    let made = answered.resource.as_ref();
    let (ask_in, park) = match &answered.end {
        AnsweredEnd::Ended(so) => return end(tx, ANSWER, owner, so, made, &answered.closed).await,
        AnsweredEnd::StillUnknown { ask_in, park } => (*ask_in, *park),
    };
    let now = now();
    let query = owned(scoped(STILL_UNKNOWN, &owner.scope).bind(TICK.count(now)), owner)?
        .bind(TICK.count_after(now, ask_in))
        .bind(park);
    let rows = resource(query, made).execute(&mut *tx).await?.rows_affected();
    if rows == 1 {
        close(tx, &owner.scope, owner.fence.get(), &answered.closed, now).await?;
    }
    fenced(tx, rows, &owner.scope, now).await
}

/// T14
pub(super) async fn resolve(
    tx: &mut SqliteConnection,
    what: &Seen,
    verdict: &Verdicted,
    audit: &AuditEntry,
) -> Result<Guarded, Trouble> {
    let now = now();
    let query = |sql| scoped(sql, &what.scope).bind(TICK.count(now));
    let resolved = match verdict {
        Verdicted::Ended { end, resource: made, .. } => {
            resource(seen(ended(query(RESOLVE), end, now), what)?, made.as_ref())
        }
        Verdicted::AskAgain => seen(query(ASK_AGAIN), what)?,
    };
    let rows = seen_owner(resolved, what).execute(&mut *tx).await?.rows_affected();
    if rows == 1 {
        if let Verdicted::Ended { closed, .. } = verdict {
            close(tx, &what.scope, what.fence.next().get(), closed, now).await?;
        }
        keep::audit(tx, audit).await?;
    }
    guarded(tx, rows, &what.scope, now).await
}

/// Keeps evidence about a call that was announced, and makes its record due.
pub(super) async fn learn(tx: &mut SqliteConnection, evidence: &Evidence) -> Result<Option<Scope>, Trouble> {
    let now = TICK.count(now());
    let Some(call) = sqlx::query(CALL).bind(evidence.key.as_str()).fetch_optional(&mut *tx).await? else {
        return Ok(None);
    };
    let scope = row::scope(&call, TICK)?;
    let (state, outcome) = state_columns(&evidence.state);
    scoped(LEARN, &scope)
        .bind(evidence.key.as_str())
        .bind(evidence.source.as_str())
        .bind(state)
        .bind(outcome)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    scoped(MAKE_DUE, &scope).bind(now).execute(tx).await?;
    Ok(Some(scope))
}

/// What was learned about the calls of a record.
pub(super) async fn learned<'c>(
    from: impl Executor<'c, Database = Sqlite>,
    scope: &Scope,
) -> Result<Vec<Dated<Evidence>>, Trouble> {
    scoped(LEARNED, scope).fetch_all(from).await?.iter().map(|row| row::evidence(row, TICK)).collect()
}

/// Records that a worker has to look at.
pub(super) async fn due(
    reader: &mut SqliteConnection,
    grace: Duration,
    after: Option<&Record>,
    limit: u32,
) -> Result<Vec<Found>, Trouble> {
    let now = TICK.count(now());
    let place = after.and_then(|record| Place::of(record, TICK));
    page(reader, (now, now.saturating_sub(TICK.count_span(grace))), place, limit).await
}

/// Records that are not settled, whenever somebody has to look at them.
pub(super) async fn unsettled(
    reader: &mut SqliteConnection,
    after: Option<&Mark>,
    limit: u32,
) -> Result<Vec<Found>, Trouble> {
    page(reader, (i64::MAX, i64::MAX), after.map(|mark| Place::at(mark, TICK)), limit).await
}

/// How long those have waited that wait longest.
pub(super) async fn oldest(reader: &mut SqliteConnection) -> Result<Oldest, Trouble> {
    let now = now();
    let row = sqlx::query(OLDEST).bind(i64::MIN).bind(TICK.count(now)).fetch_one(reader).await?;
    let waited = |column: &'static str| {
        let since: Option<i64> = row.try_get(column).map_err(|_| Trouble::Row(column))?;
        let since = since.map(|since| TICK.instant(since).ok_or(Trouble::Row(column))).transpose()?;
        Ok::<_, Trouble>(since.map_or(Duration::ZERO, |since| now.duration_since(since).unwrap_or_default()))
    };
    Ok(Oldest { abandoned: waited("abandoned")?, unknown: waited("unknown")?, parked: waited("parked")? })
}

/// Records that are due, with their calls, in one statement: the unknown ones until the first of two moments, the others
/// until the second. In the place of those that do not read come the next ones.
async fn page(
    reader: &mut SqliteConnection,
    (due, left_alone): (i64, i64),
    mut place: Option<Place>,
    limit: u32,
) -> Result<Vec<Found>, Trouble> {
    let now = now();
    let mut found = Vec::new();
    loop {
        let left = limit as usize - found.len();
        // The first page begins before every instant and every name.
        let (since, tenant, operation, key) = match &place {
            Some(place) => (place.at, &*place.tenant, &*place.operation, &*place.key),
            None => (i64::MIN, "", "", ""),
        };
        let rows = sqlx::query(DUE)
            .bind(tenant)
            .bind(operation)
            .bind(key)
            .bind(due)
            .bind(left_alone)
            .bind(since)
            .bind(left as i64)
            .fetch_all(&mut *reader)
            .await?;
        let (records, looked_at, last) = row::due_page(&rows, TICK)?;
        found.extend(records.into_iter().map(|record| Found { record, now }));
        if looked_at < left || found.len() == limit as usize {
            return Ok(found);
        }
        place = last;
    }
}

const RELEASE: &str = "
UPDATE idempotency_requests SET
    status = 'failed_retryable', next_attempt_at = ?11, expires_at = ?12, purge_at = ?13, locked_until = NULL,
    revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?14
    AND status = 'in_progress' AND locked_until <= ?4";

const STRAND: &str = "
UPDATE idempotency_requests SET
    status = 'unknown_requires_recovery', next_attempt_at = ?11, expires_at = NULL, purge_at = NULL,
    locked_until = NULL, parked_at = NULL, revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?12
    AND CASE status WHEN 'in_progress' THEN locked_until <= ?4 WHEN 'failed_retryable' THEN TRUE END";

const PARK: &str = "
UPDATE idempotency_requests SET
    status = iif(status = 'failed_retryable', status, 'unknown_requires_recovery'),
    next_attempt_at = iif(status = 'failed_retryable', next_attempt_at, ?11),
    parked_at = coalesce(parked_at, ?4), locked_until = NULL, revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?12
    AND CASE status WHEN 'in_progress' THEN locked_until <= ?4 WHEN 'failed_retryable' THEN TRUE
        WHEN 'unknown_requires_recovery' THEN coalesce(locked_until <= ?4, TRUE) END";

const TAKE_TO_ASK: &str = "
UPDATE idempotency_requests SET
    fence = fence + 1, owner_token = ?11, locked_until = ?12, ask_attempts = ask_attempts + 1,
    revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?13
    AND status = 'unknown_requires_recovery' AND next_attempt_at <= ?4 AND coalesce(locked_until <= ?4, TRUE)";

const ANSWER: &str = write_end!(
    ", resource_type = coalesce(?16, resource_type), resource_id = coalesce(?17, resource_id)",
    " AND fence = ?14 AND owner_token = ?15 AND status = 'unknown_requires_recovery' AND locked_until IS NOT NULL"
);

const STILL_UNKNOWN: &str = "
UPDATE idempotency_requests SET
    next_attempt_at = ?7, parked_at = CASE WHEN ?8 THEN coalesce(parked_at, ?4) ELSE parked_at END,
    resource_type = coalesce(?9, resource_type), resource_id = coalesce(?10, resource_id), locked_until = NULL,
    revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND owner_token = ?6 AND status = 'unknown_requires_recovery' AND locked_until IS NOT NULL";

/// The fence moves: a worker that asks right now writes nothing.
const RESOLVE: &str = write_end!(
    ", fence = fence + 1, resource_type = coalesce(?20, resource_type), resource_id = coalesce(?21, resource_id)",
    " AND fence = ?14 AND revision = ?15 AND request_hash = ?16 AND hash_form = ?17 AND hash_version = ?18
    AND status = ?19 AND owner_token = ?22 AND status IN ('failed_retryable', 'unknown_requires_recovery') AND parked_at IS NOT NULL"
);

const ASK_AGAIN: &str = "
UPDATE idempotency_requests SET
    status = 'unknown_requires_recovery', next_attempt_at = ?4, expires_at = NULL, purge_at = NULL, locked_until = NULL,
    parked_at = NULL, fence = fence + 1, revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?11
    AND status IN ('failed_retryable', 'unknown_requires_recovery') AND parked_at IS NOT NULL";

const CALL: &str = "
SELECT tenant_id, operation_name, idempotency_key FROM idempotency_calls WHERE downstream_key = ?1";

const LEARN: &str = "
INSERT INTO idempotency_evidence (
    tenant_id, operation_name, idempotency_key, downstream_key, source, state, outcome, received_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const MAKE_DUE: &str = "
UPDATE idempotency_requests SET next_attempt_at = ?4, revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND status = 'unknown_requires_recovery' AND next_attempt_at > ?4";

const LEARNED: &str = "
SELECT downstream_key, source, state, outcome, received_at AS at FROM idempotency_evidence
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
ORDER BY evidence_id";

/// ?4: now, or the end of time. ?5: the same less the grace that clients have. ?6, ?1 to ?3: the last place of the page before.
const DUE: &str = concat!(
    "
WITH page AS (
    SELECT rowid FROM idempotency_requests r
    WHERE due_at <= ?4 AND due_at >= ?6 AND (due_at, tenant_id, operation_name, idempotency_key) > (?6, ?1, ?2, ?3)
        AND (due_at <= ?5 OR status = 'unknown_requires_recovery')
        AND (status <> 'failed_retryable' OR EXISTS (SELECT 1 FROM idempotency_calls c
            WHERE c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                AND c.idempotency_key = r.idempotency_key AND c.state = 'open'))
    ORDER BY due_at, tenant_id, operation_name, idempotency_key
    LIMIT ?7)
SELECT r.due_at, ",
    record_columns!(),
    "
FROM page
CROSS JOIN idempotency_requests r ON r.rowid = page.rowid
LEFT JOIN idempotency_calls c ON r.first_call_at IS NOT NULL AND c.tenant_id = r.tenant_id
    AND c.operation_name = r.operation_name AND c.idempotency_key = r.idempotency_key
ORDER BY r.due_at, r.tenant_id, r.operation_name, r.idempotency_key, c.call_id"
);

/// ?1: before all instants, so that the index on `due_at` is walked. ?2: now.
const OLDEST: &str = "
SELECT min(created_at) FILTER (WHERE status = 'in_progress' AND due_at <= ?2) AS abandoned,
    min(created_at) FILTER (WHERE status = 'unknown_requires_recovery' AND parked_at IS NULL) AS unknown,
    min(created_at) FILTER (WHERE parked_at IS NOT NULL) AS parked
FROM idempotency_requests WHERE due_at > ?1";

/// Every statement, for the test of their plans.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    RELEASE,
    STRAND,
    PARK,
    TAKE_TO_ASK,
    ANSWER,
    STILL_UNKNOWN,
    RESOLVE,
    ASK_AGAIN,
    CALL,
    LEARN,
    MAKE_DUE,
    LEARNED,
    DUE,
    OLDEST,
];

/// Which index finds which.
#[cfg(test)]
pub(super) const INDEXED: &[(&str, &str)] = &[(DUE, "idempotency_requests_due"), (OLDEST, "idempotency_requests_due")];

//! The writes, each on a connection that holds the write lock. They say in SQL what `idem_core::transition` says in
//! Rust.

use std::time::{Duration, SystemTime};

use idem_core::store::{Claimed, ClosedCall, Fenced, Finish, Found, Guarded, NewCall, NewClaim, Seen, Step, TakeOver};
use idem_core::{Ownership, Record, Scope};
use sqlx::sqlite::SqliteArguments;
use sqlx::{Executor, Sqlite, SqliteConnection, query::Query};

use crate::error::Trouble;
use crate::row::{self, EndColumns, Tick, class_columns, state_columns};

/// SQLite's clock is this machine's. It is read when the write lock is held: a wait for it eats no lease.
pub(super) fn now() -> SystemTime {
    TICK.cut(SystemTime::now())
}

/// T1; `None` where a record is there.
pub(super) async fn claim(tx: &mut SqliteConnection, claim: &NewClaim) -> Result<Option<Claimed>, Trouble> {
    let now = now();
    let inserted = scoped(INSERT, &claim.scope)
        .bind(&claim.hash.digest()[..])
        .bind(i64::from(claim.hash.form()))
        .bind(i64::from(claim.hash.version()))
        .bind(&claim.owner.as_bytes()[..])
        .bind(TICK.count_after(now, claim.lease))
        .bind(TICK.count(now))
        .execute(tx)
        .await?;
    Ok((inserted.rows_affected() == 1).then_some(Claimed::Inserted { now }))
}

/// T8, T15
pub(super) async fn take_over(tx: &mut SqliteConnection, take: &TakeOver) -> Result<Guarded, Trouble> {
    let now = now();
    let taken = seen(TAKE_OVER, &take.seen, now)?
        .bind(&take.owner.as_bytes()[..])
        .bind(TICK.count_after(now, take.lease))
        .execute(&mut *tx)
        .await?;
    guarded(tx, taken.rows_affected(), &take.seen.scope, now).await
}

/// T9
pub(super) async fn strand(tx: &mut SqliteConnection, what: &Seen, ask_in: Duration) -> Result<Guarded, Trouble> {
    let now = now();
    let stranded = seen(STRAND, what, now)?.bind(TICK.count_after(now, ask_in)).execute(&mut *tx).await?;
    guarded(tx, stranded.rows_affected(), &what.scope, now).await
}

/// T3
pub(super) async fn step(tx: &mut SqliteConnection, owner: &Ownership, step: &Step) -> Result<Fenced, Trouble> {
    let now = now();
    let resource = step.resource.as_ref();
    let stepped = owned(STEP, owner, now)?
        .bind(resource.map(|resource| resource.kind.as_str()))
        .bind(resource.map(|resource| resource.id.as_str()))
        .bind(TICK.count_after(now, step.lease))
        .bind(step.open.is_some())
        .execute(&mut *tx)
        .await?;
    if stepped.rows_affected() == 1 {
        close(tx, owner, &step.closed, now).await?;
        if let Some(call) = &step.open {
            open(tx, owner, call, now).await?;
        }
    }
    fenced(tx, stepped.rows_affected(), &owner.scope, now).await
}

/// T4 to T7
pub(super) async fn finish(tx: &mut SqliteConnection, owner: &Ownership, finish: &Finish) -> Result<Fenced, Trouble> {
    let now = now();
    let resource = finish.resource.as_ref();
    let end = EndColumns::of(&finish.end, now, TICK);
    let finished = owned(FINISH, owner, now)?
        .bind(resource.map(|resource| resource.kind.as_str()))
        .bind(resource.map(|resource| resource.id.as_str()))
        .bind(end.status)
        .bind(end.response_status)
        .bind(end.response_headers)
        .bind(end.response_body)
        .bind(end.finished_at)
        .bind(end.expires_at)
        .bind(end.next_attempt_at)
        .execute(&mut *tx)
        .await?;
    if finished.rows_affected() == 1 {
        close(tx, owner, &finish.closed, now).await?;
    }
    fenced(tx, finished.rows_affected(), &owner.scope, now).await
}

/// The record of `scope` with its calls, in one statement, so that they belong to one moment.
pub(super) async fn read<'c>(
    from: impl Executor<'c, Database = Sqlite>,
    scope: &Scope,
) -> Result<Option<Record>, Trouble> {
    row::record(&scoped(READ, scope).fetch_all(from).await?, TICK)
}

async fn close(
    tx: &mut SqliteConnection,
    owner: &Ownership,
    closed: &[ClosedCall],
    now: SystemTime,
) -> Result<(), Trouble> {
    for call in closed {
        let (state, outcome) = state_columns(&call.state);
        scoped(CLOSE, &owner.scope)
            .bind(call.name.as_str())
            .bind(state)
            .bind(outcome)
            .bind(number(owner.fence.get())?)
            .bind(TICK.count(now))
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

async fn open(tx: &mut SqliteConnection, owner: &Ownership, call: &NewCall, now: SystemTime) -> Result<(), Trouble> {
    let (class, span) = class_columns(call.class, TICK);
    scoped(OPEN, &owner.scope)
        .bind(call.name.as_str())
        .bind(class)
        .bind(span)
        .bind(call.key.as_str())
        .bind(number(owner.fence.get())?)
        .bind(TICK.count(now))
        .execute(tx)
        .await?;
    Ok(())
}

async fn guarded(tx: &mut SqliteConnection, rows: u64, scope: &Scope, now: SystemTime) -> Result<Guarded, Trouble> {
    if rows == 1 {
        return Ok(Guarded::Written { now });
    }
    let record = read(tx, scope).await?;
    Ok(Guarded::Changed(record.map(|record| Box::new(Found { record, now }))))
}

async fn fenced(tx: &mut SqliteConnection, rows: u64, scope: &Scope, now: SystemTime) -> Result<Fenced, Trouble> {
    Ok(match guarded(tx, rows, scope, now).await? {
        Guarded::Written { now } => Fenced::Written { now },
        Guarded::Changed(found) => Fenced::Refused(found),
    })
}

type Bound<'q> = Query<'q, Sqlite, SqliteArguments>;

/// ?1 to ?3: the key.
fn scoped<'q>(sql: &'static str, scope: &'q Scope) -> Bound<'q> {
    sqlx::query(sql).bind(scope.tenant().as_str()).bind(scope.operation()).bind(scope.key().as_str())
}

/// ?4: now. ?5 and ?6: what an owner must show.
fn owned<'q>(sql: &'static str, owner: &'q Ownership, now: SystemTime) -> Result<Bound<'q>, Trouble> {
    Ok(scoped(sql, &owner.scope)
        .bind(TICK.count(now))
        .bind(number(owner.fence.get())?)
        .bind(&owner.owner.as_bytes()[..]))
}

/// ?4: now. ?5 to ?10: what was seen.
fn seen<'q>(sql: &'static str, seen: &'q Seen, now: SystemTime) -> Result<Bound<'q>, Trouble> {
    Ok(scoped(sql, &seen.scope)
        .bind(TICK.count(now))
        .bind(number(seen.fence.get())?)
        .bind(number(seen.revision.get())?)
        .bind(&seen.hash.digest()[..])
        .bind(i64::from(seen.hash.form()))
        .bind(i64::from(seen.hash.version()))
        .bind(seen.status.as_str()))
}

/// SQLite's integers are signed; a number beyond them was never read from it.
fn number(number: u64) -> Result<i64, Trouble> {
    i64::try_from(number).map_err(|_| Trouble::Row("fence"))
}

pub(super) const TICK: Tick = Tick::MILLISECOND;

const INSERT: &str = "
INSERT INTO idempotency_requests (
    tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token,
    revision, attempts, locked_until, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'in_progress', 1, ?7, 1, 1, ?8, ?9, ?9)
ON CONFLICT (tenant_id, operation_name, idempotency_key) DO NOTHING";

const READ: &str = "
SELECT r.tenant_id, r.operation_name, r.idempotency_key, r.request_hash, r.hash_form, r.hash_version, r.status, r.fence,
    r.owner_token, r.revision, r.locked_until, r.response_status, r.response_headers, r.response_body, r.resource_type,
    r.resource_id, r.attempts, r.next_attempt_at, r.parked_at, r.created_at, r.finished_at, r.expires_at,
    c.call_name, c.class, c.class_span, c.downstream_key, c.state, c.opened_at, c.outcome
FROM idempotency_requests r
LEFT JOIN idempotency_calls c ON r.first_call_at IS NOT NULL AND c.tenant_id = r.tenant_id
    AND c.operation_name = r.operation_name AND c.idempotency_key = r.idempotency_key
WHERE r.tenant_id = ?1 AND r.operation_name = ?2 AND r.idempotency_key = ?3
ORDER BY c.call_id";

const TAKE_OVER: &str = "
UPDATE idempotency_requests SET
    status = 'in_progress', fence = fence + 1, owner_token = ?11, revision = revision + 1, attempts = attempts + 1,
    locked_until = ?12, next_attempt_at = NULL, expires_at = NULL, parked_at = NULL, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND CASE status WHEN 'in_progress' THEN locked_until <= ?4 WHEN 'failed_retryable' THEN next_attempt_at <= ?4 END";

const STRAND: &str = "
UPDATE idempotency_requests SET
    status = 'unknown_requires_recovery', revision = revision + 1, locked_until = NULL, next_attempt_at = ?11,
    parked_at = NULL, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND status = 'in_progress' AND locked_until <= ?4";

const STEP: &str = "
UPDATE idempotency_requests SET
    revision = revision + 1, resource_type = coalesce(?7, resource_type), resource_id = coalesce(?8, resource_id),
    locked_until = ?9, first_call_at = CASE WHEN ?10 THEN coalesce(first_call_at, ?4) ELSE first_call_at END,
    updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND owner_token = ?6 AND status = 'in_progress'";

const FINISH: &str = "
UPDATE idempotency_requests SET
    status = ?9, revision = revision + 1, resource_type = coalesce(?7, resource_type),
    resource_id = coalesce(?8, resource_id), locked_until = NULL, response_status = ?10, response_headers = ?11,
    response_body = ?12, finished_at = ?13, expires_at = ?14, next_attempt_at = ?15, parked_at = NULL, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND owner_token = ?6 AND status = 'in_progress'";

/// A call that is closed stays as it was closed first.
const CLOSE: &str = "
UPDATE idempotency_calls SET state = ?5, outcome = ?6, fence = ?7, closed_at = ?8
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND call_name = ?4 AND state = 'open'";

/// One that is open, or done, stays as it is; one that was withdrawn opens again, under the key it had.
const OPEN: &str = "
INSERT INTO idempotency_calls (
    tenant_id, operation_name, idempotency_key, call_name, class, class_span, downstream_key, state, fence, opened_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', ?8, ?9)
ON CONFLICT (tenant_id, operation_name, idempotency_key, call_name) DO UPDATE SET
    state = 'open', class = excluded.class, class_span = excluded.class_span, fence = excluded.fence,
    opened_at = excluded.opened_at, closed_at = NULL
WHERE state = 'withdrawn'";

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row};

    use super::*;
    use crate::sqlite::options::SqliteOptions;
    use crate::sqlite::{pulse, schema};

    #[tokio::test]
    async fn every_statement_finds_its_rows_by_an_index() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("idem.db");
        let mut connection = schema::connect(&SqliteOptions::new(&file), &file, true).await.unwrap();
        schema::migrate(&mut connection).await.unwrap();
        for statement in [INSERT, READ, TAKE_OVER, STRAND, STEP, FINISH, CLOSE, OPEN, pulse::RENEW] {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            for row in sqlx::query(explain).fetch_all(&mut connection).await.unwrap() {
                let plan: String = row.get("detail");
                assert!(!plan.contains("SCAN") || plan.starts_with("SCAN live"), "{plan}: {statement}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_answered_is_on_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("idem.db");
        let options = SqliteOptions::new(&file);
        let mut connection = schema::connect(&options, &file, true).await.unwrap();
        let synchronous: i64 = sqlx::query("PRAGMA synchronous").fetch_one(&mut connection).await.unwrap().get(0);
        let journal: String = sqlx::query("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap().get(0);
        assert_eq!((synchronous, journal.as_str()), (2, "wal"));
    }
}

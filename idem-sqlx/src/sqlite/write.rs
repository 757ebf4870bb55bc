//! The writes of requests and owners, each on a connection that holds the write lock. They say in SQL what
//! `idem_core::transition` says in Rust.

use std::time::SystemTime;

use idem_core::store::{
    Claimed, ClosedCall, End, Fenced, Finish, Found, Guarded, NewCall, NewClaim, Seen, Step, TakeOver,
};
use idem_core::{Ownership, Record, ResourceRef, Scope};
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
    let taken = seen(scoped(TAKE_OVER, &take.seen.scope).bind(TICK.count(now)), &take.seen)?
        .bind(&take.owner.as_bytes()[..])
        .bind(TICK.count_after(now, take.lease));
    let taken = seen_owner(taken, &take.seen).execute(&mut *tx).await?;
    guarded(tx, taken.rows_affected(), &take.seen.scope, now).await
}

/// T3
pub(super) async fn step(tx: &mut SqliteConnection, owner: &Ownership, step: &Step) -> Result<Fenced, Trouble> {
    let now = now();
    let checkpoint = step.checkpoint.as_ref();
    let query = owned(scoped(STEP, &owner.scope).bind(TICK.count(now)), owner)?
        .bind(TICK.count_after(now, step.lease))
        .bind(step.open.is_some())
        .bind(checkpoint.map(|checkpoint| checkpoint.name.as_str()))
        .bind(checkpoint.map(|checkpoint| i64::from(checkpoint.version)))
        .bind(checkpoint.map(|checkpoint| checkpoint.data.as_slice()));
    let stepped = resource(query, step.resource.as_ref()).execute(&mut *tx).await?;
    if stepped.rows_affected() == 1 {
        close(tx, &owner.scope, owner.fence.get(), &step.closed, now).await?;
        if let Some(call) = &step.open {
            open(tx, owner, call, now).await?;
        }
    }
    fenced(tx, stepped.rows_affected(), &owner.scope, now).await
}

/// T4 to T7
pub(super) async fn finish(tx: &mut SqliteConnection, owner: &Ownership, finish: &Finish) -> Result<Fenced, Trouble> {
    end(tx, FINISH, owner, &finish.end, finish.resource.as_ref(), &finish.closed).await
}

/// What an owner, or a worker that asked, ends: `sql` says whose.
pub(super) async fn end(
    tx: &mut SqliteConnection,
    sql: &'static str,
    owner: &Ownership,
    end: &End,
    made: Option<&ResourceRef>,
    closed: &[ClosedCall],
) -> Result<Fenced, Trouble> {
    let now = now();
    let query = ended(scoped(sql, &owner.scope).bind(TICK.count(now)), end, now);
    let rows = resource(owned(query, owner)?, made).execute(&mut *tx).await?.rows_affected();
    if rows == 1 {
        close(tx, &owner.scope, owner.fence.get(), closed, now).await?;
    }
    fenced(tx, rows, &owner.scope, now).await
}

/// The record of `scope` with its calls, in one statement, so that they belong to one moment.
pub(super) async fn read<'c>(
    from: impl Executor<'c, Database = Sqlite>,
    scope: &Scope,
) -> Result<Option<Record>, Trouble> {
    Ok(row::records(&scoped(READ, scope).fetch_all(from).await?, TICK)?.pop())
}

/// Closes calls that are open, under the fence of who says so.
pub(super) async fn close(
    tx: &mut SqliteConnection,
    scope: &Scope,
    fence: u64,
    closed: &[ClosedCall],
    now: SystemTime,
) -> Result<(), Trouble> {
    for call in closed {
        let (state, outcome) = state_columns(&call.state);
        scoped(CLOSE, scope)
            .bind(call.name.as_str())
            .bind(state)
            .bind(outcome)
            .bind(number(fence)?)
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

pub(super) async fn guarded(
    tx: &mut SqliteConnection,
    rows: u64,
    scope: &Scope,
    now: SystemTime,
) -> Result<Guarded, Trouble> {
    if rows == 1 {
        return Ok(Guarded::Written { now });
    }
    let record = read(tx, scope).await?;
    Ok(Guarded::Changed(record.map(|record| Box::new(Found { record, now }))))
}

pub(super) async fn fenced(
    tx: &mut SqliteConnection,
    rows: u64,
    scope: &Scope,
    now: SystemTime,
) -> Result<Fenced, Trouble> {
    Ok(match guarded(tx, rows, scope, now).await? {
        Guarded::Written { now } => Fenced::Written { now },
        Guarded::Changed(found) => Fenced::Refused(found),
    })
}

pub(super) type Bound<'q> = Query<'q, Sqlite, SqliteArguments>;

/// ?1 to ?3: the key.
pub(super) fn scoped<'q>(sql: &'static str, scope: &'q Scope) -> Bound<'q> {
    sqlx::query(sql).bind(scope.tenant().as_str()).bind(scope.operation()).bind(scope.key().as_str())
}

/// Two: what an owner must show.
pub(super) fn owned<'q>(query: Bound<'q>, owner: &'q Ownership) -> Result<Bound<'q>, Trouble> {
    Ok(query.bind(number(owner.fence.get())?).bind(&owner.owner.as_bytes()[..]))
}

/// Six: what was seen, but for the owner, which each statement has last ([`seen_owner`]).
pub(super) fn seen<'q>(query: Bound<'q>, seen: &'q Seen) -> Result<Bound<'q>, Trouble> {
    Ok(query
        .bind(number(seen.fence.get())?)
        .bind(number(seen.revision.get())?)
        .bind(&seen.hash.digest()[..])
        .bind(i64::from(seen.hash.form()))
        .bind(i64::from(seen.hash.version()))
        .bind(seen.status.as_str()))
}

/// One: the attempt that owned what was seen.
pub(super) fn seen_owner<'q>(query: Bound<'q>, seen: &'q Seen) -> Bound<'q> {
    query.bind(&seen.owner.as_bytes()[..])
}

/// Nine: how it ended.
pub(super) fn ended<'q>(query: Bound<'q>, end: &'q End, now: SystemTime) -> Bound<'q> {
    let end = EndColumns::of(end, now, TICK);
    query
        .bind(end.status)
        .bind(end.response_status)
        .bind(end.response_headers)
        .bind(end.response_body)
        .bind(end.finished_at)
        .bind(end.expires_at)
        .bind(end.body_until)
        .bind(end.purge_at)
        .bind(end.next_attempt_at)
}

/// Two: what the command made.
pub(super) fn resource<'q>(query: Bound<'q>, resource: Option<&'q ResourceRef>) -> Bound<'q> {
    let resource = resource.map(|resource| (resource.kind.as_str(), resource.id.as_str()));
    query.bind(resource.map(|(kind, _)| kind)).bind(resource.map(|(_, id)| id))
}

/// SQLite's integers are signed; a number beyond them was never read from it.
pub(super) fn number(number: u64) -> Result<i64, Trouble> {
    i64::try_from(number).map_err(|_| Trouble::Row("fence"))
}

pub(super) const TICK: Tick = Tick::MILLISECOND;

/// Writes an end: ?4 now, ?5 to ?13 the end's columns; from ?14 on `guard`'s own.
macro_rules! write_end {
    ($more:literal, $guard:literal) => {
        concat!(
            "
UPDATE idempotency_requests SET
    status = ?5, response_status = ?6, response_headers = ?7, response_body = ?8, finished_at = ?9, expires_at = ?10,
    body_until = ?11, purge_at = ?12, next_attempt_at = ?13, locked_until = NULL, parked_at = NULL,
    revision = revision + 1, updated_at = ?4",
            $more,
            "
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3",
            $guard
        )
    };
}
pub(super) use write_end;

const INSERT: &str = "
INSERT INTO idempotency_requests (
    tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token,
    revision, attempts, locked_until, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'in_progress', 1, ?7, 1, 1, ?8, ?9, ?9)
ON CONFLICT (tenant_id, operation_name, idempotency_key) DO NOTHING";

/// The columns of a record and of one of its calls.
macro_rules! record_columns {
    () => {
        "r.tenant_id, r.operation_name, r.idempotency_key, r.request_hash, r.hash_form, r.hash_version, r.status, r.fence,
    r.owner_token, r.revision, r.locked_until, r.response_status, r.response_headers, r.response_body, r.resource_type,
    r.resource_id, r.checkpoint, r.checkpoint_version, r.checkpoint_data, r.attempts, r.ask_attempts, r.next_attempt_at,
    r.parked_at, r.created_at, r.finished_at, r.expires_at, r.body_until, r.purge_at,
    c.call_name, c.class, c.class_span, c.downstream_key, c.state, c.opened_at, c.outcome"
    };
}
pub(super) use record_columns;

const READ: &str = concat!(
    "SELECT ",
    record_columns!(),
    "
FROM idempotency_requests r
LEFT JOIN idempotency_calls c ON r.first_call_at IS NOT NULL AND c.tenant_id = r.tenant_id
    AND c.operation_name = r.operation_name AND c.idempotency_key = r.idempotency_key
WHERE r.tenant_id = ?1 AND r.operation_name = ?2 AND r.idempotency_key = ?3
ORDER BY c.call_id"
);

const TAKE_OVER: &str = "
UPDATE idempotency_requests SET
    status = 'in_progress', fence = fence + 1, owner_token = ?11, revision = revision + 1, attempts = attempts + 1,
    ask_attempts = 0, locked_until = ?12, next_attempt_at = NULL, expires_at = NULL, purge_at = NULL, parked_at = NULL,
    updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND revision = ?6 AND request_hash = ?7 AND hash_form = ?8 AND hash_version = ?9 AND status = ?10
    AND owner_token = ?13
    AND CASE status WHEN 'in_progress' THEN locked_until <= ?4 WHEN 'failed_retryable' THEN next_attempt_at <= ?4 END";

const STEP: &str = "
UPDATE idempotency_requests SET
    locked_until = ?7, first_call_at = CASE WHEN ?8 THEN coalesce(first_call_at, ?4) ELSE first_call_at END,
    checkpoint = coalesce(?9, checkpoint), checkpoint_version = coalesce(?10, checkpoint_version),
    checkpoint_data = coalesce(?11, checkpoint_data), resource_type = coalesce(?12, resource_type),
    resource_id = coalesce(?13, resource_id), revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3
    AND fence = ?5 AND owner_token = ?6 AND status = 'in_progress'";

const FINISH: &str = write_end!(
    ", resource_type = coalesce(?16, resource_type), resource_id = coalesce(?17, resource_id)",
    " AND fence = ?14 AND owner_token = ?15 AND status = 'in_progress'"
);

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

/// Every statement, for the test of their plans.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, READ, TAKE_OVER, STEP, FINISH, CLOSE, OPEN];

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row};

    use super::*;
    use crate::sqlite::options::SqliteOptions;
    use crate::sqlite::{keep, outbox, pulse, recover, schema, sweep};

    #[tokio::test]
    async fn every_statement_finds_its_rows_by_an_index() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("idem.db");
        let mut connection = schema::connect(&SqliteOptions::new(&file), &file, true).await.unwrap();
        schema::migrate(&mut connection).await.unwrap();
        let elsewhere = [
            recover::STATEMENTS,
            sweep::STATEMENTS,
            keep::STATEMENTS,
            outbox::sql::STATEMENTS,
            &[pulse::RENEW, pulse::OWNS],
        ];
        let elsewhere = elsewhere.concat();
        for statement in STATEMENTS.iter().chain(&elsewhere) {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            for row in sqlx::query(explain).fetch_all(&mut connection).await.unwrap() {
                let plan: String = row.get("detail");
                // What was asked for, and a page that was found by an index, are walked through; so are the settings, of
                // which there is a handful, and each is wanted.
                let walked = ["SCAN live", "SCAN page", "SCAN idempotency_settings"];
                let walked = walked.iter().any(|walked| plan.starts_with(walked));
                assert!(!plan.contains("SCAN") || walked || plan == "SCAN CONSTANT ROW", "{plan}: {statement}");
            }
        }
        for (statement, index) in recover::INDEXED.iter().chain(sweep::INDEXED).chain(outbox::sql::INDEXED) {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let plans = sqlx::query(explain).fetch_all(&mut connection).await.unwrap();
            let found = plans.iter().any(|row| row.get::<String, _>("detail").contains(&format!("INDEX {index} (")));
            assert!(found, "{statement} is not found by {index}");
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

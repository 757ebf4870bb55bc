//! A record as columns, and back. One mapping for every database: its statements name the columns alike and give
//! integers, texts and bytes, nothing else. Instants and spans are counted in the database's tick.

mod due;

use std::time::{Duration, SystemTime};

pub(crate) use due::{Place, due_page};
use idem_core::store::{AuditEntry, Dated, End, Evidence, after};
use idem_core::{
    CallClass, CallRecord, CallState, Checkpoint, CommandHash, DownstreamKey, Fence, Finished, IdempotencyKey, Keep,
    OwnerToken, Record, ResourceRef, Revision, Scope, Status, StatusName, StoredResponse, Tenant,
};
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::error::Trouble;

/// How a database counts time: SQLite in milliseconds, as everything older than its `subsec` does, PostgreSQL in
/// microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tick(Duration);

impl Tick {
    #[cfg(feature = "sqlite")]
    pub(crate) const MILLISECOND: Self = Self(Duration::from_millis(1));
    #[cfg(feature = "postgres")]
    pub(crate) const MICROSECOND: Self = Self(Duration::from_micros(1));

    /// An instant for a column, cut to the tick; before 1970 there is none.
    pub(crate) fn count(self, at: SystemTime) -> i64 {
        self.count_span(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }

    /// The instant `span` after `now`, for a column.
    pub(crate) fn count_after(self, now: SystemTime, span: Duration) -> i64 {
        self.count(after(now, span))
    }

    /// A span for a column, cut to the tick.
    pub(crate) fn count_span(self, span: Duration) -> i64 {
        i64::try_from(span.as_nanos() / self.0.as_nanos()).unwrap_or(i64::MAX)
    }

    pub(crate) fn instant(self, ticks: i64) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(self.span(ticks)?)
    }

    fn span(self, ticks: i64) -> Option<Duration> {
        let nanos = u128::from(u64::try_from(ticks).ok()?) * self.0.as_nanos();
        Some(Duration::new(u64::try_from(nanos / 1_000_000_000).ok()?, (nanos % 1_000_000_000) as u32))
    }

    /// An instant as a column will hold it.
    pub(crate) fn cut(self, at: SystemTime) -> SystemTime {
        self.instant(self.count(at)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// The columns that an attempt's end sets; all others of the same kind become NULL.
pub(crate) struct EndColumns<'a> {
    pub(crate) status: &'static str,
    pub(crate) response_status: Option<i64>,
    pub(crate) response_headers: Option<Vec<u8>>,
    pub(crate) response_body: Option<&'a [u8]>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    /// `None` where the body is kept for the whole window, which costs no index anything.
    pub(crate) body_until: Option<i64>,
    pub(crate) purge_at: Option<i64>,
    pub(crate) next_attempt_at: Option<i64>,
}

impl<'a> EndColumns<'a> {
    pub(crate) fn of(end: &'a End, now: SystemTime, tick: Tick) -> Self {
        let at = |span: Duration| Some(tick.count_after(now, span));
        let kept = |keep: &Keep| Self {
            status: end.status().as_str(),
            response_status: None,
            response_headers: None,
            response_body: None,
            finished_at: None,
            expires_at: at(keep.window),
            body_until: None,
            purge_at: Some(tick.count_after(after(now, keep.window), keep.metadata)),
            next_attempt_at: None,
        };
        match end {
            End::Completed { response, keep } | End::FailedReplayable { response, keep } => Self {
                response_status: Some(response.status.into()),
                response_headers: Some(response.headers_to_bytes()),
                response_body: response.body.as_deref(),
                finished_at: Some(tick.count(now)),
                body_until: if keep.body < keep.window { at(keep.body) } else { None },
                ..kept(keep)
            },
            End::FailedRetryable { retry_in, keep } => Self { next_attempt_at: at(*retry_in), ..kept(keep) },
            End::Unknown { ask_in } => {
                let never = Keep { window: Duration::ZERO, body: Duration::ZERO, metadata: Duration::ZERO };
                Self { next_attempt_at: at(*ask_in), expires_at: None, purge_at: None, ..kept(&never) }
            }
        }
    }
}

/// A call's class as its two columns. A part of a tick never makes a promise longer: a retention is cut, a
/// quiescence rounded up.
pub(crate) fn class_columns(class: CallClass, tick: Tick) -> (&'static str, Option<i64>) {
    match class {
        CallClass::Dedupes { retention } => (DEDUPES, Some(tick.count_span(retention))),
        CallClass::QueryOnly { quiescence } => {
            let almost = tick.0.saturating_sub(Duration::from_nanos(1));
            (QUERY_ONLY, Some(tick.count_span(quiescence.saturating_add(almost))))
        }
        CallClass::Neither => (NEITHER, None),
    }
}

/// A call's state as its two columns.
pub(crate) fn state_columns(state: &CallState) -> (&'static str, Option<&[u8]>) {
    match state {
        CallState::Open => (OPEN, None),
        CallState::Applied(outcome) => (APPLIED, Some(outcome)),
        CallState::Rejected(outcome) => (REJECTED, Some(outcome)),
        CallState::Withdrawn => (WITHDRAWN, None),
    }
}

/// Reads records from the rows of one statement: a record's columns in each, one row for each of its calls, or one in
/// which `call_name` is NULL. The rows of one record follow each other.
///
/// # Errors
/// The first column that does not read.
pub(crate) fn records<R: Row>(rows: &[R], tick: Tick) -> Result<Vec<Record>, Trouble>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    let mut records: Vec<Record> = Vec::new();
    for row in rows {
        let row = Columns { row, tick };
        let scope = row.scope()?;
        let call = row.call()?;
        match records.last_mut() {
            Some(record) if record.scope == scope => record.calls.extend(call),
            _ => records.push(Record { calls: Vec::from_iter(call), ..row.record(scope)? }),
        }
    }
    Ok(records)
}

/// Reads a key: `tenant_id`, `operation_name`, `idempotency_key`.
///
/// # Errors
/// The first column that does not read.
pub(crate) fn scope<R: Row>(row: &R, tick: Tick) -> Result<Scope, Trouble>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    Columns { row, tick }.scope()
}

/// Reads one thing that was learned: `downstream_key`, `source`, `state`, `outcome`, `at`.
///
/// # Errors
/// The first column that does not read.
pub(crate) fn evidence<R: Row>(row: &R, tick: Tick) -> Result<Dated<Evidence>, Trouble>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    let row = Columns { row, tick };
    let key = DownstreamKey::from_stored(row.needed("downstream_key")?);
    let what = Evidence { key, source: row.needed("source")?, state: row.state()? };
    Ok(Dated { at: row.instant("at")?, what })
}

/// Reads one row of the audit about a record: its scope, `action`, `actor`, `reason`, `at`.
///
/// # Errors
/// The first column that does not read.
pub(crate) fn audit<R: Row>(row: &R, tick: Tick) -> Result<Dated<AuditEntry>, Trouble>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    let row = Columns { row, tick };
    let [action, actor, reason] = [row.needed("action")?, row.needed("actor")?, row.needed("reason")?];
    let what = AuditEntry { scope: Some(row.scope()?), action, actor, reason };
    Ok(Dated { at: row.instant("at")?, what })
}

/// One row, read by the names of its columns.
struct Columns<'a, R> {
    row: &'a R,
    tick: Tick,
}

impl<R: Row> Columns<'_, R>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    /// The record, without its calls.
    fn record(&self, scope: Scope) -> Result<Record, Trouble> {
        Ok(Record {
            scope,
            hash: self.hash()?,
            fence: Fence::from_stored(self.positive("fence")?),
            owner: OwnerToken::from_stored(self.parse("owner_token", |bytes: Vec<u8>| bytes.try_into().ok())?),
            revision: Revision::from_stored(self.positive("revision")?),
            attempts: self.parse("attempts", |number: i64| number.try_into().ok())?,
            ask_attempts: self.parse("ask_attempts", |number: i64| number.try_into().ok())?,
            created_at: self.instant("created_at")?,
            status: self.status()?,
            calls: Vec::new(),
            resource: self.resource()?,
            checkpoint: self.checkpoint()?,
        })
    }

    fn scope(&self) -> Result<Scope, Trouble> {
        let tenant = self.parse("tenant_id", |text: String| Tenant::new(text).ok())?;
        let key = self.parse("idempotency_key", |text: String| IdempotencyKey::from_bytes(text.as_bytes()).ok())?;
        Ok(Scope::new(tenant, &self.needed::<String>("operation_name")?, key))
    }

    fn hash(&self) -> Result<CommandHash, Trouble> {
        let form = self.parse("hash_form", |number: i64| number.try_into().ok())?;
        let version = self.parse("hash_version", |number: i64| number.try_into().ok())?;
        self.parse("request_hash", |digest: Vec<u8>| CommandHash::from_parts(form, version, digest).ok())
    }

    fn status(&self) -> Result<Status, Trouble> {
        Ok(match self.parse("status", |text: String| StatusName::from_stored(&text))? {
            StatusName::InProgress => Status::InProgress { locked_until: self.instant("locked_until")? },
            StatusName::Completed => Status::Completed(self.finished()?),
            StatusName::FailedReplayable => Status::FailedReplayable(self.finished()?),
            StatusName::FailedRetryable => Status::FailedRetryable {
                next_attempt_at: self.instant("next_attempt_at")?,
                expires_at: self.instant("expires_at")?,
                purge_at: self.instant("purge_at")?,
                parked_at: self.instant_or_null("parked_at")?,
            },
            StatusName::Unknown => Status::Unknown {
                next_ask_at: self.instant("next_attempt_at")?,
                locked_until: self.instant_or_null("locked_until")?,
                parked_at: self.instant_or_null("parked_at")?,
            },
            StatusName::Expired => Status::Expired { purge_at: self.instant("purge_at")? },
        })
    }

    fn finished(&self) -> Result<Finished, Trouble> {
        let response = StoredResponse {
            status: self.parse("response_status", |number: i64| number.try_into().ok())?,
            headers: self.parse("response_headers", |bytes: Vec<u8>| StoredResponse::headers_from_bytes(&bytes))?,
            body: self.or_null("response_body")?,
        };
        let expires_at = self.instant("expires_at")?;
        Ok(Finished {
            response,
            at: self.instant("finished_at")?,
            expires_at,
            body_until: self.instant_or_null("body_until")?.unwrap_or(expires_at),
            purge_at: self.instant("purge_at")?,
        })
    }

    fn resource(&self) -> Result<Option<ResourceRef>, Trouble> {
        match (self.or_null("resource_type")?, self.or_null("resource_id")?) {
            (Some(kind), Some(id)) => Ok(Some(ResourceRef { kind, id })),
            (None, None) => Ok(None),
            _ => Err(Trouble::Row("resource_id")),
        }
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, Trouble> {
        let Some(name) = self.or_null("checkpoint")? else { return Ok(None) };
        let version = self.parse("checkpoint_version", |number: i64| number.try_into().ok())?;
        Ok(Some(Checkpoint { name, version, data: self.needed("checkpoint_data")? }))
    }

    fn state(&self) -> Result<CallState, Trouble> {
        let outcome = || self.needed("outcome");
        Ok(match self.needed::<String>("state")?.as_str() {
            OPEN => CallState::Open,
            APPLIED => CallState::Applied(outcome()?),
            REJECTED => CallState::Rejected(outcome()?),
            WITHDRAWN => CallState::Withdrawn,
            _ => return Err(Trouble::Row("state")),
        })
    }

    fn call(&self) -> Result<Option<CallRecord>, Trouble> {
        let Some(name) = self.or_null("call_name")? else { return Ok(None) };
        let span = || self.parse("class_span", |ticks: i64| self.tick.span(ticks));
        Ok(Some(CallRecord {
            name,
            class: match self.needed::<String>("class")?.as_str() {
                DEDUPES => CallClass::Dedupes { retention: span()? },
                QUERY_ONLY => CallClass::QueryOnly { quiescence: span()? },
                NEITHER => CallClass::Neither,
                _ => return Err(Trouble::Row("class")),
            },
            key: DownstreamKey::from_stored(self.needed("downstream_key")?),
            state: self.state()?,
            opened_at: self.instant("opened_at")?,
        }))
    }

    fn or_null<T>(&self, column: &'static str) -> Result<Option<T>, Trouble>
    where
        for<'r> T: Decode<'r, R::Database> + Type<R::Database>,
    {
        self.row.try_get(column).map_err(|_| Trouble::Row(column))
    }

    fn needed<T>(&self, column: &'static str) -> Result<T, Trouble>
    where
        for<'r> T: Decode<'r, R::Database> + Type<R::Database>,
    {
        self.or_null(column)?.ok_or(Trouble::Row(column))
    }

    fn parse<T, U>(&self, column: &'static str, read: impl FnOnce(T) -> Option<U>) -> Result<U, Trouble>
    where
        for<'r> T: Decode<'r, R::Database> + Type<R::Database>,
    {
        read(self.needed(column)?).ok_or(Trouble::Row(column))
    }

    fn positive(&self, column: &'static str) -> Result<u64, Trouble> {
        self.parse(column, |number: i64| u64::try_from(number).ok().filter(|&number| number > 0))
    }

    fn instant(&self, column: &'static str) -> Result<SystemTime, Trouble> {
        self.parse(column, |ticks: i64| self.tick.instant(ticks))
    }

    fn instant_or_null(&self, column: &'static str) -> Result<Option<SystemTime>, Trouble> {
        let ticks: Option<i64> = self.or_null(column)?;
        ticks.map(|ticks| self.tick.instant(ticks).ok_or(Trouble::Row(column))).transpose()
    }
}

const DEDUPES: &str = "dedupes";
const QUERY_ONLY: &str = "query_only";
const NEITHER: &str = "neither";

const OPEN: &str = "open";
const APPLIED: &str = "applied";
const REJECTED: &str = "rejected";
const WITHDRAWN: &str = "withdrawn";

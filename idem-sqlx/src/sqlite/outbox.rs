//! Events and marks: in the application's transaction, and for relays.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_core::StoreError;
use idem_core::store::AuditEntry;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite, SqliteConnection};

use crate::error::{Error, Trouble};
use crate::outbox::statements::{self as queue, ByHand, Lease, Queue, Read, Redriven, Settle, Settled};
use crate::outbox::{Backlog, DeadLetter, Event};
use crate::sqlite::write::{TICK, now};
use crate::sqlite::writer::Awaited;
use crate::sqlite::{SqliteStore, keep};
use crate::tables::statements::{Mark, Statements};

#[async_trait]
impl Statements for Sqlite {
    async fn append(connection: &mut SqliteConnection, event: &Event) -> Result<bool, Error> {
        let query = sqlx::query(APPEND).bind(&event.id).bind(&event.topic).bind(&event.key).bind(&event.kind);
        let now = now();
        let query = query.bind(i64::from(event.version)).bind(&event.payload).bind(TICK.count(now));
        let query = query.bind(TICK.count_after(now, OUT_OF_THE_WAY));
        Ok(query.execute(connection).await.map_err(Error::of_sqlite)?.rows_affected() == 1)
    }

    async fn appended(connection: &mut SqliteConnection, id: &str) -> Result<Option<[String; 3]>, Error> {
        let row = sqlx::query(APPENDED).bind(id).fetch_optional(connection).await.map_err(Error::of_sqlite)?;
        let Some(row) = row else { return Ok(None) };
        let text = |at| row.try_get::<String, usize>(at).map_err(Error::of_sqlite);
        Ok(Some([text(0)?, text(1)?, text(2)?]))
    }

    async fn mark(
        connection: &mut SqliteConnection,
        consumer: &str,
        event_id: &str,
        keep: Duration,
    ) -> Result<Mark, Error> {
        let since = now();
        let query = sqlx::query(MARK).bind(consumer).bind(event_id).bind(TICK.count(since));
        let marked = query.bind(TICK.count_after(since, keep)).execute(connection).await;
        let marked = marked.map_err(Error::of_sqlite)?;
        Ok(Mark { first: marked.rows_affected() == 1, since, now: now() })
    }

    async fn is_marked(connection: &mut SqliteConnection, consumer: &str, event_id: &str) -> Result<bool, Error> {
        let query = sqlx::query(MARKED).bind(consumer).bind(event_id);
        Ok(query.fetch_optional(connection).await.map_err(Error::of_sqlite)?.is_some())
    }

    fn sorted(error: sqlx::Error) -> Error {
        Error::of_sqlite(error)
    }
}

#[async_trait]
impl Queue for SqliteStore {
    async fn take(&self, lease: &Lease, limit: u32) -> Result<Vec<Read>, StoreError> {
        // Beside the writer: a relay that finds nothing holds up nobody.
        let mut reader = self.reader().await?;
        let due = sqlx::query(DUE).bind(TICK.count(now())).fetch_optional(&mut *reader).await.map_err(Trouble::from)?;
        if due.is_none() {
            return Ok(Vec::new());
        }
        let lease = *lease;
        let work = async move |tx: &mut SqliteConnection, awaited: Awaited<'_>| {
            if !awaited.holds() {
                return Ok(Vec::new());
            }
            let taken = take(tx, &lease, limit).await?;
            // Events that nobody has would wait for the end of a lease, and be one attempt older. Nobody hears the error: it
            // takes the taking back.
            if awaited.holds() { Ok(taken) } else { Err(Error::Busy.into()) }
        };
        Ok(self.writer.run_awaited(work).await?)
    }

    async fn settle(&self, lease: &Lease, number: i64, settle: &Settle) -> Result<Settled, StoreError> {
        let (lease, settle) = (*lease, settle.clone());
        let work = async move |tx: &mut SqliteConnection, awaited: Awaited<'_>| {
            write(tx, &lease, number, &settle, awaited).await
        };
        Ok(self.writer.run_awaited(work).await?)
    }

    async fn dead(&self, limit: u32) -> Result<Vec<DeadLetter>, StoreError> {
        let mut reader = self.reader().await?;
        let rows = sqlx::query(DEAD).bind(i64::from(limit)).fetch_all(&mut *reader).await.map_err(Trouble::from)?;
        Ok(rows.iter().map(letter).collect::<Result<_, _>>()?)
    }

    async fn redrive(&self, id: &str, by: &ByHand) -> Result<bool, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        Ok(self.writer.run(async move |tx: &mut SqliteConnection| redrive(tx, &id, &by).await).await?)
    }

    async fn redrive_topic(&self, topic: &str, after: i64, limit: u32, by: &ByHand) -> Result<Redriven, StoreError> {
        let (topic, by) = (topic.to_owned(), by.clone());
        let work = async move |tx: &mut SqliteConnection| redrive_topic(tx, &topic, after, limit, &by).await;
        Ok(self.writer.run(work).await?)
    }

    async fn skip(&self, id: &str, by: &ByHand) -> Result<bool, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        Ok(self.writer.run(async move |tx: &mut SqliteConnection| skip(tx, &id, &by).await).await?)
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let mut reader = self.reader().await?;
        let row = sqlx::query(BACKLOG).fetch_one(&mut *reader).await.map_err(Trouble::from)?;
        let count = |name| column::<i64>(&row, name).map(i64::unsigned_abs);
        let oldest: Option<i64> = column(&row, "oldest")?;
        let oldest = oldest.and_then(|at| SystemTime::now().duration_since(TICK.instant(at)?).ok());
        Ok(Backlog { waiting: count("waiting")?, dead: count("dead")?, oldest })
    }

    async fn clean(&self, older: Duration, limit: u32) -> Result<u64, StoreError> {
        // Beside the writer: it looks at all that is due.
        let mut reader = self.reader().await?;
        let before = now().checked_sub(A_WHILE).unwrap_or(SystemTime::UNIX_EPOCH);
        let behind = sqlx::query_scalar(BEHIND).bind(TICK.count(before)).bind(i64::from(limit));
        let behind: Vec<i64> = behind.fetch_all(&mut *reader).await.map_err(Trouble::from)?;
        drop(reader);
        Ok(self.writer.run(async move |tx: &mut SqliteConnection| clean(tx, older, limit, behind).await).await?)
    }

    async fn clean_marks(&self, limit: u32) -> Result<u64, StoreError> {
        Ok(self.writer.run(async move |tx: &mut SqliteConnection| clean_marks(tx, limit).await).await?)
    }
}

async fn take(tx: &mut SqliteConnection, lease: &Lease, limit: u32) -> Result<Vec<Read>, Trouble> {
    let now = now();
    let query = sqlx::query(TAKE).bind(&lease.owner.as_bytes()[..]).bind(TICK.count_after(now, lease.span));
    let rows = query.bind(i64::from(limit)).bind(TICK.count(now)).fetch_all(&mut *tx).await?;
    let mut taken = Vec::new();
    for row in &rows {
        taken.push(read(tx, lease, row).await?);
    }
    Ok(taken)
}

/// What was just taken. A row that does not read would be taken again and again.
async fn read(tx: &mut SqliteConnection, lease: &Lease, row: &SqliteRow) -> Result<Read, Trouble> {
    let read = queue::taken(row)?;
    if let Err(unreadable) = &read {
        let query = sqlx::query(NOT_PUBLISHED).bind(&lease.owner.as_bytes()[..]).bind(unreadable.number);
        query.bind("dead").bind(TICK.count(now())).bind(unreadable.why()).execute(tx).await?;
    }
    Ok(read)
}

async fn write(
    tx: &mut SqliteConnection,
    lease: &Lease,
    number: i64,
    settle: &Settle,
    awaited: Awaited<'_>,
) -> Result<Settled, Trouble> {
    let now = now();
    let owner = &lease.owner.as_bytes()[..];
    let (state, due_at, why) = match settle {
        Settle::Published { next } => {
            let query = sqlx::query(PUBLISHED).bind(owner).bind(number).bind(TICK.count(now));
            if query.execute(&mut *tx).await?.rows_affected() == 0 {
                return Ok(Settled::Lost);
            }
            if !next || !awaited.holds() {
                wake_next(tx, number).await?;
                return Ok(Settled::Done(None));
            }
            let query = sqlx::query(TAKE_NEXT).bind(owner).bind(TICK.count_after(now, lease.span)).bind(number);
            let Some(row) = query.fetch_optional(&mut *tx).await? else { return Ok(Settled::Done(None)) };
            return Ok(Settled::Done(Some(Box::new(read(tx, lease, &row).await?))));
        }
        Settle::Later { pause, why } => ("waiting", TICK.count_after(now, *pause), Some(why)),
        Settle::Dead { why } => ("dead", TICK.count(now), Some(why)),
        Settle::Untried => ("waiting", TICK.count(now), None),
    };
    let query = sqlx::query(NOT_PUBLISHED).bind(owner).bind(number).bind(state).bind(due_at).bind(why);
    Ok(if query.execute(tx).await?.rows_affected() == 0 { Settled::Lost } else { Settled::Done(None) })
}

/// The event is out or skipped: the next one of its line is due, for whoever comes.
async fn wake_next(tx: &mut SqliteConnection, number: i64) -> Result<(), Trouble> {
    sqlx::query(WAKE_NEXT).bind(number).bind(TICK.count(now())).execute(tx).await?;
    Ok(())
}

fn letter(row: &SqliteRow) -> Result<DeadLetter, Trouble> {
    let appended_at = TICK.instant(column(row, "appended_at")?).ok_or(Trouble::Row("appended_at"))?;
    queue::letter(row, column(row, "last_error")?, appended_at)
}

async fn redrive(tx: &mut SqliteConnection, id: &str, by: &ByHand) -> Result<bool, Trouble> {
    let query = sqlx::query(REDRIVE).bind(id).bind(TICK.count(now()));
    let redriven = query.execute(&mut *tx).await?.rows_affected() == 1;
    if redriven {
        keep::audit(tx, &entry("redrive event", id, by)).await?;
    }
    Ok(redriven)
}

async fn redrive_topic(
    tx: &mut SqliteConnection,
    topic: &str,
    after: i64,
    limit: u32,
    by: &ByHand,
) -> Result<Redriven, Trouble> {
    let query = sqlx::query(REDRIVE_TOPIC).bind(topic).bind(after).bind(i64::from(limit)).bind(TICK.count(now()));
    let mut redriven = Redriven { count: 0, last: after };
    for row in query.fetch_all(&mut *tx).await? {
        keep::audit(tx, &entry("redrive event", &column::<String>(&row, "event_id")?, by)).await?;
        redriven.count += 1;
        redriven.last = redriven.last.max(column(&row, "event_no")?);
    }
    Ok(redriven)
}

async fn skip(tx: &mut SqliteConnection, id: &str, by: &ByHand) -> Result<bool, Trouble> {
    let query = sqlx::query(SKIP).bind(id).bind(TICK.count(now()));
    let Some(row) = query.fetch_optional(&mut *tx).await? else { return Ok(false) };
    wake_next(tx, column(&row, "event_no")?).await?;
    keep::audit(tx, &entry("skip event", id, by)).await?;
    Ok(true)
}

fn entry(action: &str, id: &str, by: &ByHand) -> AuditEntry {
    let ByHand { actor, reason } = by.clone();
    AuditEntry { scope: None, action: format!("{action} {id}"), actor, reason }
}

async fn clean(tx: &mut SqliteConnection, older: Duration, limit: u32, behind: Vec<i64>) -> Result<u64, Trouble> {
    let now = now();
    let before = now.checked_sub(older).unwrap_or(SystemTime::UNIX_EPOCH);
    let query = sqlx::query(CLEAN_EVENTS).bind(TICK.count(before)).bind(i64::from(limit));
    let mut cleaned = query.execute(&mut *tx).await?.rows_affected();
    for number in behind {
        let query = sqlx::query(DEFER).bind(number).bind(TICK.count_after(now, OUT_OF_THE_WAY));
        cleaned += query.execute(&mut *tx).await?.rows_affected();
    }
    Ok(cleaned)
}

async fn clean_marks(tx: &mut SqliteConnection, limit: u32) -> Result<u64, Trouble> {
    let query = sqlx::query(CLEAN_MARKS).bind(TICK.count(now())).bind(i64::from(limit));
    Ok(query.execute(tx).await?.rows_affected())
}

fn column<'r, T>(row: &'r SqliteRow, name: &'static str) -> Result<T, Trouble>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(name).map_err(|_| Trouble::Row(name))
}

/// An event behind another one is out of the way of who looks for what may be taken, until it is its turn. No row: there is
/// an event of this id.
const APPEND: &str = "
INSERT INTO idempotency_outbox
    (event_id, topic, ordering_key, event_type, schema_version, payload, state, appended_at, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', ?7, iif(EXISTS (
    SELECT 1 FROM idempotency_outbox WHERE topic = ?2 AND ordering_key = ?3 AND finished_at IS NULL), ?8, ?7))
ON CONFLICT (event_id) DO NOTHING";

const APPENDED: &str = "
SELECT topic, ordering_key, event_type FROM idempotency_outbox WHERE event_id = ?1";

const DUE: &str = "
SELECT 1 FROM idempotency_outbox WHERE state = 'waiting' AND due_at <= ?1 LIMIT 1";

/// Only the first of a line: what comes after it is nobody's while it is not out, whoever has it.
const TAKE: &str = "
UPDATE idempotency_outbox SET owner_token = ?1, attempts = attempts + 1, due_at = ?2
WHERE event_no IN (
    SELECT h.event_no FROM idempotency_outbox h
    WHERE h.state = 'waiting' AND h.due_at <= ?4 AND NOT EXISTS (
        SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
            AND f.finished_at IS NULL AND f.event_no < h.event_no)
    ORDER BY h.due_at LIMIT ?3)
RETURNING event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts";

const PUBLISHED: &str = "
UPDATE idempotency_outbox SET state = 'published', finished_at = ?3, owner_token = NULL, last_error = NULL
WHERE event_no = ?2 AND owner_token = ?1 AND state = 'waiting'";

/// The next one of the line of an event that went out. When it was due does not matter: it was never the first before.
const TAKE_NEXT: &str = "
UPDATE idempotency_outbox SET owner_token = ?1, attempts = attempts + 1, due_at = ?2
WHERE state = 'waiting' AND event_no = (
    SELECT f.event_no FROM idempotency_outbox o
    JOIN idempotency_outbox f ON f.topic = o.topic AND f.ordering_key = o.ordering_key AND f.finished_at IS NULL
    WHERE o.event_no = ?3 ORDER BY f.event_no LIMIT 1)
RETURNING event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts";

const WAKE_NEXT: &str = "
UPDATE idempotency_outbox SET due_at = ?2
WHERE state = 'waiting' AND event_no = (
    SELECT f.event_no FROM idempotency_outbox o
    JOIN idempotency_outbox f ON f.topic = o.topic AND f.ordering_key = o.ordering_key AND f.finished_at IS NULL
    WHERE o.event_no = ?1 ORDER BY f.event_no LIMIT 1)";

/// Without a reason nobody tried, and it counts as no attempt.
const NOT_PUBLISHED: &str = "
UPDATE idempotency_outbox SET state = ?3, due_at = ?4, owner_token = NULL, last_error = coalesce(?5, last_error),
    attempts = attempts - (?5 IS NULL)
WHERE event_no = ?2 AND owner_token = ?1 AND state = 'waiting'";

/// What has waited behind another one for a while.
const BEHIND: &str = "
SELECT h.event_no FROM idempotency_outbox h
WHERE h.state = 'waiting' AND h.owner_token IS NULL AND h.due_at < ?1 AND EXISTS (
    SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
        AND f.finished_at IS NULL AND f.event_no < h.event_no)
ORDER BY h.due_at LIMIT ?2";

const DEFER: &str = "
UPDATE idempotency_outbox AS h SET due_at = ?2
WHERE h.event_no = ?1 AND h.state = 'waiting' AND h.owner_token IS NULL AND EXISTS (
    SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
        AND f.finished_at IS NULL AND f.event_no < h.event_no)";

const DEAD: &str = "
SELECT event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts, appended_at,
    coalesce(last_error, '') AS last_error
FROM idempotency_outbox WHERE state = 'dead' ORDER BY event_no LIMIT ?1";

const REDRIVE: &str = "
UPDATE idempotency_outbox SET state = 'waiting', attempts = 0, due_at = ?2 WHERE event_id = ?1 AND state = 'dead'";

const REDRIVE_TOPIC: &str = "
UPDATE idempotency_outbox SET state = 'waiting', attempts = 0, due_at = ?4
WHERE event_no IN (
    SELECT event_no FROM idempotency_outbox WHERE state = 'dead' AND topic = ?1 AND event_no > ?2
    ORDER BY event_no LIMIT ?3)
RETURNING event_no, event_id";

const SKIP: &str = "
UPDATE idempotency_outbox SET state = 'skipped', finished_at = ?2 WHERE event_id = ?1 AND state = 'dead'
RETURNING event_no";

const BACKLOG: &str = "
SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead,
    min(appended_at) AS oldest
FROM idempotency_outbox INDEXED BY idempotency_outbox_line WHERE finished_at IS NULL";

const CLEAN_EVENTS: &str = "
DELETE FROM idempotency_outbox WHERE event_no IN (
    SELECT event_no FROM idempotency_outbox WHERE finished_at < ?1 ORDER BY finished_at LIMIT ?2)";

const MARK: &str = "
INSERT INTO idempotency_inbox (consumer, event_id, seen_at, purge_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (consumer, event_id) DO NOTHING";

const MARKED: &str = "SELECT 1 FROM idempotency_inbox WHERE consumer = ?1 AND event_id = ?2";

const CLEAN_MARKS: &str = "
DELETE FROM idempotency_inbox WHERE (consumer, event_id) IN (
    SELECT consumer, event_id FROM idempotency_inbox WHERE purge_at < ?1 ORDER BY purge_at LIMIT ?2)";

/// For how long an event behind another one is out of the way, unless it is its turn before that.
const OUT_OF_THE_WAY: Duration = Duration::from_secs(60 * 60);

/// After which an event that is due should have been taken.
const A_WHILE: Duration = Duration::from_secs(10);

/// Every statement that finds its rows by an index, for the test of their plans. (A backlog is counted along one.)
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    APPEND,
    APPENDED,
    DUE,
    TAKE,
    PUBLISHED,
    TAKE_NEXT,
    WAKE_NEXT,
    NOT_PUBLISHED,
    BEHIND,
    DEFER,
    REDRIVE,
    REDRIVE_TOPIC,
    SKIP,
    CLEAN_EVENTS,
    MARK,
    MARKED,
    CLEAN_MARKS,
];

#[cfg(test)]
pub(super) const INDEXED: &[(&str, &str)] = &[
    (APPEND, "idempotency_outbox_line"),
    (DUE, "idempotency_outbox_due"),
    (TAKE, "idempotency_outbox_line"),
    (TAKE, "idempotency_outbox_due"),
    (TAKE_NEXT, "idempotency_outbox_line"),
    (WAKE_NEXT, "idempotency_outbox_line"),
    (BEHIND, "idempotency_outbox_due"),
    (BEHIND, "idempotency_outbox_line"),
    (REDRIVE_TOPIC, "idempotency_outbox_dead"),
    (CLEAN_EVENTS, "idempotency_outbox_finished"),
    (CLEAN_MARKS, "idempotency_inbox_purge"),
];

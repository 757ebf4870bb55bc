//! Events and marks: in the application's transaction, and for relays.

pub(super) mod sql;

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
        let query = sqlx::query(sql::APPEND).bind(&event.id).bind(&event.topic).bind(&event.key).bind(&event.kind);
        let now = now();
        let query = query.bind(i64::from(event.version)).bind(&event.payload).bind(TICK.count(now));
        let query = query.bind(TICK.count_after(now, OUT_OF_THE_WAY));
        Ok(query.execute(connection).await.map_err(Error::of_sqlite)?.rows_affected() == 1)
    }

    async fn appended(connection: &mut SqliteConnection, id: &str) -> Result<Option<[String; 3]>, Error> {
        let row = sqlx::query(sql::APPENDED).bind(id).fetch_optional(connection).await.map_err(Error::of_sqlite)?;
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
        let query = sqlx::query(sql::MARK).bind(consumer).bind(event_id).bind(TICK.count(since));
        let marked = query.bind(TICK.count_after(since, keep)).execute(connection).await;
        let marked = marked.map_err(Error::of_sqlite)?;
        Ok(Mark { first: marked.rows_affected() == 1, since, now: now() })
    }

    async fn is_marked(connection: &mut SqliteConnection, consumer: &str, event_id: &str) -> Result<bool, Error> {
        let query = sqlx::query(sql::MARKED).bind(consumer).bind(event_id);
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
        let due =
            sqlx::query(sql::DUE).bind(TICK.count(now())).fetch_optional(&mut *reader).await.map_err(Trouble::from)?;
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
        let rows =
            sqlx::query(sql::DEAD).bind(i64::from(limit)).fetch_all(&mut *reader).await.map_err(Trouble::from)?;
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
        let row = sqlx::query(sql::BACKLOG).fetch_one(&mut *reader).await.map_err(Trouble::from)?;
        let count = |name| column::<i64>(&row, name).map(i64::unsigned_abs);
        let oldest: Option<i64> = column(&row, "oldest")?;
        let oldest = oldest.and_then(|at| SystemTime::now().duration_since(TICK.instant(at)?).ok());
        Ok(Backlog { waiting: count("waiting")?, dead: count("dead")?, oldest })
    }

    async fn clean(&self, older: Duration, limit: u32) -> Result<u64, StoreError> {
        // Beside the writer: it looks at all that is due.
        let mut reader = self.reader().await?;
        let before = now().checked_sub(A_WHILE).unwrap_or(SystemTime::UNIX_EPOCH);
        let behind = sqlx::query_scalar(sql::BEHIND).bind(TICK.count(before)).bind(i64::from(limit));
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
    let query = sqlx::query(sql::TAKE).bind(&lease.owner.as_bytes()[..]).bind(TICK.count_after(now, lease.span));
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
        let query = sqlx::query(sql::NOT_PUBLISHED).bind(&lease.owner.as_bytes()[..]).bind(unreadable.number);
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
            let query = sqlx::query(sql::PUBLISHED).bind(owner).bind(number).bind(TICK.count(now));
            if query.execute(&mut *tx).await?.rows_affected() == 0 {
                return Ok(Settled::Lost);
            }
            if !next || !awaited.holds() {
                wake_next(tx, number).await?;
                return Ok(Settled::Done(None));
            }
            let query = sqlx::query(sql::TAKE_NEXT).bind(owner).bind(TICK.count_after(now, lease.span)).bind(number);
            let Some(row) = query.fetch_optional(&mut *tx).await? else { return Ok(Settled::Done(None)) };
            return Ok(Settled::Done(Some(Box::new(read(tx, lease, &row).await?))));
        }
        Settle::Later { pause, why } => ("waiting", TICK.count_after(now, *pause), Some(why)),
        Settle::Dead { why } => ("dead", TICK.count(now), Some(why)),
        Settle::Untried => ("waiting", TICK.count(now), None),
    };
    let query = sqlx::query(sql::NOT_PUBLISHED).bind(owner).bind(number).bind(state).bind(due_at).bind(why);
    Ok(if query.execute(tx).await?.rows_affected() == 0 { Settled::Lost } else { Settled::Done(None) })
}

/// The event is out or skipped: the next one of its line is due, for whoever comes.
async fn wake_next(tx: &mut SqliteConnection, number: i64) -> Result<(), Trouble> {
    sqlx::query(sql::WAKE_NEXT).bind(number).bind(TICK.count(now())).execute(tx).await?;
    Ok(())
}

fn letter(row: &SqliteRow) -> Result<DeadLetter, Trouble> {
    let appended_at = TICK.instant(column(row, "appended_at")?).ok_or(Trouble::Row("appended_at"))?;
    queue::letter(row, column(row, "last_error")?, appended_at)
}

async fn redrive(tx: &mut SqliteConnection, id: &str, by: &ByHand) -> Result<bool, Trouble> {
    let query = sqlx::query(sql::REDRIVE).bind(id).bind(TICK.count(now()));
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
    let query = sqlx::query(sql::REDRIVE_TOPIC).bind(topic).bind(after).bind(i64::from(limit)).bind(TICK.count(now()));
    let mut redriven = Redriven { count: 0, last: after };
    for row in query.fetch_all(&mut *tx).await? {
        keep::audit(tx, &entry("redrive event", &column::<String>(&row, "event_id")?, by)).await?;
        redriven.count += 1;
        redriven.last = redriven.last.max(column(&row, "event_no")?);
    }
    Ok(redriven)
}

async fn skip(tx: &mut SqliteConnection, id: &str, by: &ByHand) -> Result<bool, Trouble> {
    let query = sqlx::query(sql::SKIP).bind(id).bind(TICK.count(now()));
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
    let query = sqlx::query(sql::CLEAN_EVENTS).bind(TICK.count(before)).bind(i64::from(limit));
    let mut cleaned = query.execute(&mut *tx).await?.rows_affected();
    for number in behind {
        let query = sqlx::query(sql::DEFER).bind(number).bind(TICK.count_after(now, OUT_OF_THE_WAY));
        cleaned += query.execute(&mut *tx).await?.rows_affected();
    }
    Ok(cleaned)
}

async fn clean_marks(tx: &mut SqliteConnection, limit: u32) -> Result<u64, Trouble> {
    let query = sqlx::query(sql::CLEAN_MARKS).bind(TICK.count(now())).bind(i64::from(limit));
    Ok(query.execute(tx).await?.rows_affected())
}

fn column<'r, T>(row: &'r SqliteRow, name: &'static str) -> Result<T, Trouble>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(name).map_err(|_| Trouble::Row(name))
}

/// For how long an event behind another one is out of the way, unless it is its turn before that.
const OUT_OF_THE_WAY: Duration = Duration::from_secs(60 * 60);

/// After which an event that is due should have been taken.
const A_WHILE: Duration = Duration::from_secs(10);

//! Events and marks: in the application's transaction, and for relays.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_core::StoreError;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, Row};

use crate::error::{Error, Trouble};
use crate::outbox::statements::{self as queue, ByHand, Lease, Queue, Read, Redriven, Settle, Settled};
use crate::outbox::{Backlog, DeadLetter, Event};
use crate::postgres::session::{Session, token};
use crate::postgres::write::{instant, micros};
use crate::postgres::{PgStore, at_desk, sql};
use crate::tables::statements::{Mark, Statements};

/// The application's connection may lead through a proxy, which knows nothing of statements that were prepared before the
/// transaction: nothing stays prepared.
#[async_trait]
impl Statements for Postgres {
    async fn append(connection: &mut PgConnection, event: &Event) -> Result<bool, Error> {
        let query = sqlx::query(sql::APPEND).persistent(false).bind(&event.id).bind(&event.topic).bind(&event.key);
        let query = query.bind(&event.kind).bind(i64::from(event.version)).bind(&event.payload);
        Ok(query.fetch_optional(connection).await.map_err(Error::of_postgres)?.is_some())
    }

    async fn appended(connection: &mut PgConnection, id: &str) -> Result<Option<[String; 3]>, Error> {
        let row = sqlx::query(sql::APPENDED).persistent(false).bind(id).fetch_optional(connection).await;
        let Some(row) = row.map_err(Error::of_postgres)? else { return Ok(None) };
        let text = |at| row.try_get::<String, usize>(at).map_err(Error::of_postgres);
        Ok(Some([text(0)?, text(1)?, text(2)?]))
    }

    async fn mark(
        connection: &mut PgConnection,
        consumer: &str,
        event_id: &str,
        keep: Duration,
    ) -> Result<Mark, Error> {
        let query = sqlx::query(sql::MARK).persistent(false).bind(consumer).bind(event_id).bind(micros(keep));
        let row = query.fetch_one(connection).await.map_err(Error::of_postgres)?;
        let first = row.try_get("first").map_err(Error::of_postgres)?;
        let at = |name: &str| {
            let micros: i64 = row.try_get(name).map_err(Error::of_postgres)?;
            Ok::<_, Error>(SystemTime::UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs()))
        };
        Ok(Mark { first, since: at("since")?, now: at("now")? })
    }

    async fn is_marked(connection: &mut PgConnection, consumer: &str, event_id: &str) -> Result<bool, Error> {
        let query = sqlx::query(sql::MARKED).persistent(false).bind(consumer).bind(event_id);
        Ok(query.fetch_optional(connection).await.map_err(Error::of_postgres)?.is_some())
    }

    fn sorted(error: sqlx::Error) -> Error {
        Error::of_postgres(error)
    }
}

#[async_trait]
impl Queue for PgStore {
    async fn take(&self, lease: &Lease, limit: u32) -> Result<Vec<Read>, StoreError> {
        at_desk!(self, |session, lease| take(session, &lease, limit))
    }

    async fn settle(&self, lease: &Lease, number: i64, settle: &Settle) -> Result<Settled, StoreError> {
        at_desk!(self, |session, lease, settle| write(session, &lease, number, &settle))
    }

    async fn dead(&self, limit: u32) -> Result<Vec<DeadLetter>, StoreError> {
        at_desk!(self, |session| dead(session, limit))
    }

    async fn redrive(&self, id: &str, by: &ByHand) -> Result<bool, StoreError> {
        at_desk!(self, |session, id, by| by_hand(session, sql::REDRIVE, &id, &by))
    }

    async fn redrive_topic(&self, topic: &str, after: i64, limit: u32, by: &ByHand) -> Result<Redriven, StoreError> {
        at_desk!(self, |session, topic, by| redrive_topic(session, &topic, after, limit, &by))
    }

    async fn skip(&self, id: &str, by: &ByHand) -> Result<bool, StoreError> {
        at_desk!(self, |session, id, by| by_hand(session, sql::SKIP, &id, &by))
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        at_desk!(self, |session| backlog(session))
    }

    async fn clean(&self, older: Duration, limit: u32) -> Result<u64, StoreError> {
        at_desk!(self, |session| clean(session, older, limit))
    }

    async fn clean_marks(&self, limit: u32) -> Result<u64, StoreError> {
        at_desk!(self, |session| clean_marks(session, limit))
    }
}

async fn take(session: &mut Session<'_>, lease: &Lease, limit: u32) -> Result<Vec<Read>, Trouble> {
    let query = sqlx::query(sql::TAKE).bind(token(lease.owner.as_bytes())).bind(micros(lease.span));
    let mut taken = Vec::new();
    for row in session.rows(query.bind(i64::from(limit))).await? {
        taken.push(read(session, lease, &row).await?);
    }
    Ok(taken)
}

/// What was just taken. A row that does not read would be taken again and again.
async fn read(session: &mut Session<'_>, lease: &Lease, row: &PgRow) -> Result<Read, Trouble> {
    let read = queue::taken(row)?;
    if let Err(unreadable) = &read {
        let query = sqlx::query(sql::NOT_PUBLISHED).bind(token(lease.owner.as_bytes())).bind(unreadable.number);
        session.rows(query.bind(None::<i64>).bind(unreadable.why())).await?;
    }
    Ok(read)
}

async fn write(session: &mut Session<'_>, lease: &Lease, number: i64, settle: &Settle) -> Result<Settled, Trouble> {
    let owner = token(lease.owner.as_bytes());
    let (pause, why) = match settle {
        Settle::Published { next } => {
            let query = sqlx::query(sql::PUBLISHED).bind(owner).bind(micros(lease.span)).bind(number).bind(next);
            let rows = session.rows(query).await?;
            let row = rows.first().ok_or(Trouble::Row("done"))?;
            if column::<i64>(row, "done")? == 0 {
                return Ok(Settled::Lost);
            }
            if column::<Option<i64>>(row, "event_no")?.is_none() {
                return Ok(Settled::Done(None));
            }
            return Ok(Settled::Done(Some(Box::new(read(session, lease, row).await?))));
        }
        Settle::Later { pause, why } => (Some(micros(*pause)), Some(why)),
        Settle::Dead { why } => (None, Some(why)),
        Settle::Untried => (Some(0), None),
    };
    let query = sqlx::query(sql::NOT_PUBLISHED).bind(owner).bind(number).bind(pause).bind(why);
    let rows = session.rows(query).await?;
    Ok(if rows.is_empty() { Settled::Lost } else { Settled::Done(None) })
}

async fn dead(session: &mut Session<'_>, limit: u32) -> Result<Vec<DeadLetter>, Trouble> {
    let rows = session.rows(sqlx::query(sql::DEAD).bind(i64::from(limit))).await?;
    let letter = |row: &PgRow| {
        let appended_at = instant(row, "appended_at")?.ok_or(Trouble::Row("appended_at"))?;
        queue::letter(row, column(row, "last_error")?, appended_at)
    };
    rows.iter().map(letter).collect()
}

/// Whether there was such a dead letter.
async fn by_hand(session: &mut Session<'_>, sql: &'static str, id: &str, by: &ByHand) -> Result<bool, Trouble> {
    let query = sqlx::query(sql).bind(id).bind(&by.actor).bind(&by.reason);
    Ok(!session.rows(query).await?.is_empty())
}

async fn redrive_topic(
    session: &mut Session<'_>,
    topic: &str,
    after: i64,
    limit: u32,
    by: &ByHand,
) -> Result<Redriven, Trouble> {
    let query = sqlx::query(sql::REDRIVE_TOPIC).bind(topic).bind(after).bind(i64::from(limit));
    let rows = session.rows(query.bind(&by.actor).bind(&by.reason)).await?;
    let row = rows.first().ok_or(Trouble::Row("redriven"))?;
    Ok(Redriven { count: column::<i64>(row, "redriven")?.unsigned_abs(), last: column(row, "last")? })
}

async fn backlog(session: &mut Session<'_>) -> Result<Backlog, Trouble> {
    let rows = session.rows(sqlx::query(sql::BACKLOG)).await?;
    let row = rows.first().ok_or(Trouble::Row("waiting"))?;
    let count = |name| column::<i64>(row, name).map(i64::unsigned_abs);
    let oldest = column::<Option<i64>>(row, "oldest")?;
    let oldest = oldest.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default()));
    Ok(Backlog { waiting: count("waiting")?, dead: count("dead")?, oldest })
}

async fn clean(session: &mut Session<'_>, older: Duration, limit: u32) -> Result<u64, Trouble> {
    let mut cleaned = 0;
    for statement in [sql::CLEAN_EVENTS, sql::CLEAN_LINES] {
        let query = sqlx::query(statement).bind(micros(older)).bind(i64::from(limit));
        cleaned += session.rows(query).await?.len() as u64;
    }
    cleaned += session.rows(sqlx::query(sql::DEFER).bind(i64::from(limit))).await?.len() as u64;
    Ok(cleaned)
}

async fn clean_marks(session: &mut Session<'_>, limit: u32) -> Result<u64, Trouble> {
    Ok(session.rows(sqlx::query(sql::CLEAN_MARKS).bind(i64::from(limit))).await?.len() as u64)
}

fn column<'r, T>(row: &'r PgRow, name: &'static str) -> Result<T, Trouble>
where
    T: sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
{
    row.try_get(name).map_err(|_| Trouble::Row(name))
}

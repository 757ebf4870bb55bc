//! Recovery's reading, the sweep, and what is kept beside the records.

use std::time::Duration;

use idem_core::store::{AuditEntry, Dated, Evidence, Found, Mark, Oldest, SweepOrder, Swept};
use idem_core::{Record, Scope};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::{Error, Trouble};
use crate::postgres::session::{Bound, Session, scoped};
use crate::postgres::sql;
use crate::postgres::write::{TICK, instant, micros};
use crate::row::{self, Place, state_columns};

pub(super) async fn due(
    session: &mut Session<'_>,
    grace: Duration,
    after: Option<&Record>,
    limit: u32,
) -> Result<Vec<Found>, Trouble> {
    if after.is_none() {
        for _ in 0..WALKS {
            if !walk(session, grace).await? {
                break;
            }
        }
    }
    let mut place = after.and_then(|record| Place::of(record, TICK));
    let mut found = Vec::new();
    // In the place of those that do not read come the next ones.
    loop {
        let left = limit as usize - found.len();
        let query = sqlx::query(sql::DUE).bind(micros(grace)).bind(left as i64);
        let rows = session.rows(placed(query, place.as_ref())).await?;
        let (looked_at, last) = read_page(&rows, &mut found)?;
        if looked_at < left || found.len() == limit as usize {
            return Ok(found);
        }
        place = last;
    }
}

pub(super) async fn unsettled(
    session: &mut Session<'_>,
    after: Option<&Mark>,
    limit: u32,
) -> Result<Vec<Found>, Trouble> {
    // What is in progress and was not walked past yet is looked for along the line itself: that must be short.
    while after.is_none() && walk(session, LATELY).await? {}
    let mut place = after.map(|mark| Place::at(mark, TICK));
    let mut found = Vec::new();
    loop {
        let left = limit as usize - found.len();
        let query = sqlx::query(sql::UNSETTLED).bind(left as i64);
        let rows = session.rows(placed(query, place.as_ref())).await?;
        let (looked_at, last) = read_page(&rows, &mut found)?;
        if looked_at < left || found.len() == limit as usize {
            return Ok(found);
        }
        place = last;
    }
}

/// How long those have waited that wait longest.
pub(super) async fn oldest(session: &mut Session<'_>) -> Result<Oldest, Trouble> {
    let rows = session.rows(sqlx::query(sql::OLDEST)).await?;
    let row = rows.first().ok_or(Trouble::Row("abandoned"))?;
    let waited = |name| {
        let micros: Option<i64> = column(row, name)?;
        Ok::<_, Trouble>(Duration::from_micros(
            micros.and_then(|micros| u64::try_from(micros).ok()).unwrap_or_default(),
        ))
    };
    Ok(Oldest { abandoned: waited("abandoned")?, unknown: waited("unknown")?, parked: waited("parked")? })
}

/// Walks a part of the sweeper's line; whether there is more of it.
async fn walk(session: &mut Session<'_>, grace: Duration) -> Result<bool, Trouble> {
    let rows = session.rows(sqlx::query(sql::ADOPT).bind(micros(grace)).bind(WALK)).await?;
    // No row: another worker walks right now.
    let more = rows.first().map(|row| column::<bool>(row, "more")).transpose()?;
    Ok(more == Some(true))
}

/// Four parameters more: after which record.
fn placed<'q>(query: Bound<'q>, place: Option<&'q Place>) -> Bound<'q> {
    query
        .bind(place.map(|place| place.at))
        .bind(place.map(|place| &*place.tenant))
        .bind(place.map(|place| &*place.operation))
        .bind(place.map(|place| &*place.key))
}

/// Adds the records of a page; how many it has, with those that do not read, and the place of its last one.
fn read_page(rows: &[PgRow], found: &mut Vec<Found>) -> Result<(usize, Option<Place>), Trouble> {
    let (records, looked_at, last) = row::due_page(rows, TICK)?;
    if let Some(first) = rows.first() {
        let now = instant(first, "now")?.ok_or(Trouble::Row("now"))?;
        found.extend(records.into_iter().map(|record| Found { record, now }));
    }
    Ok((looked_at, last))
}

pub(super) async fn learn(session: &mut Session<'_>, evidence: &Evidence) -> Result<Option<Scope>, Trouble> {
    let (state, outcome) = state_columns(&evidence.state);
    let query =
        sqlx::query(sql::LEARN).bind(evidence.key.as_str()).bind(evidence.source.as_str()).bind(state).bind(outcome);
    let rows = session.rows(query).await?;
    rows.first().map(|row| row::scope(row, TICK)).transpose()
}

pub(super) async fn learned(session: &mut Session<'_>, scope: &Scope) -> Result<Vec<Dated<Evidence>>, Trouble> {
    let rows = session.rows(scoped(sql::LEARNED, scope)).await?;
    rows.iter().map(|row| row::evidence(row, TICK)).collect()
}

/// One batch, of all kinds together: they stand in one line. Rows that only get another place in it count against the
/// batch and are not told of, so a batch of nothing else is followed by the next one, for a while.
pub(super) async fn sweep(session: &mut Session<'_>, order: SweepOrder) -> Result<Swept, Trouble> {
    let mut swept = Swept::default();
    let statements = if order.purge_tombstones { &[sql::SWEEP, sql::SWEEP_TOMBSTONES][..] } else { &[sql::SWEEP] };
    for statement in statements {
        let mut walked = 0;
        while walked < SEARCH {
            let left = u64::from(order.limit).saturating_sub(swept.bodies + swept.expired + swept.purged);
            if left == 0 {
                break;
            }
            let batch = i64::try_from(left).unwrap_or(i64::MAX);
            let rows = session.rows(sqlx::query(*statement).bind(batch).bind(order.purge_tombstones)).await?;
            let row = rows.first().ok_or(Trouble::Row("looked_at"))?;
            let count = |name| column::<i64>(row, name).map(i64::unsigned_abs);
            let cleaned = (count("bodies")?, count("expired")?, count("purged")?);
            swept.bodies += cleaned.0;
            swept.expired += cleaned.1;
            swept.purged += cleaned.2;
            let looked_at = count("looked_at")?;
            if cleaned != (0, 0, 0) || looked_at < left {
                break;
            }
            walked += looked_at;
        }
    }
    session.rows(sqlx::query(sql::SWEEP_BODIES).bind(i64::from(order.limit))).await?;
    Ok(swept)
}

/// Makes the partitions of the days to come, and drops those that are over.
pub(super) async fn turn_days(session: &mut Session<'_>) -> Result<(), Trouble> {
    session.rows(sqlx::query(sql::TURN_DAYS)).await?;
    Ok(())
}

pub(super) async fn contracts(
    session: &mut Session<'_>,
    operation: &str,
    version: u32,
) -> Result<Vec<String>, Trouble> {
    let rows = session.rows(sqlx::query(sql::CONTRACTS).bind(operation).bind(i64::from(version))).await?;
    rows.iter().map(|row| column(row, "contract")).collect()
}

pub(super) async fn add_contract(
    session: &mut Session<'_>,
    operation: &str,
    version: u32,
    number: u32,
    text: &str,
) -> Result<bool, Trouble> {
    let query =
        sqlx::query(sql::ADD_CONTRACT).bind(operation).bind(i64::from(version)).bind(i64::from(number)).bind(text);
    Ok(!session.rows(query).await?.is_empty())
}

pub(super) async fn settle_setting(session: &mut Session<'_>, name: &str, value: &str) -> Result<String, Trouble> {
    for _ in 0..ROUNDS {
        let rows = session.rows(sqlx::query(sql::SETTLE_SETTING).bind(name).bind(value)).await?;
        if let Some(row) = rows.first() {
            return column(row, "value");
        }
    }
    Err(Error::Contended.into())
}

pub(super) async fn settings(session: &mut Session<'_>) -> Result<Vec<(String, String)>, Trouble> {
    let rows = session.rows(sqlx::query(sql::SETTINGS)).await?;
    rows.iter().map(|row| Ok((column(row, "name")?, column(row, "value")?))).collect()
}

pub(super) async fn sign_of_life(session: &mut Session<'_>) -> Result<(), Trouble> {
    session.rows(sqlx::query(sql::SIGN)).await?;
    Ok(())
}

pub(super) async fn silence(session: &mut Session<'_>) -> Result<Option<Duration>, Trouble> {
    let rows = session.rows(sqlx::query(sql::SILENCE)).await?;
    let silence = rows.first().map(|row| column::<i64>(row, "silence")).transpose()?;
    Ok(silence.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default())))
}

pub(super) async fn audit(session: &mut Session<'_>, entry: &AuditEntry) -> Result<(), Trouble> {
    let scope = entry.scope.as_ref();
    let query = sqlx::query(sql::AUDIT)
        .bind(scope.map(|scope| scope.tenant().as_str()))
        .bind(scope.map(Scope::operation))
        .bind(scope.map(|scope| scope.key().as_str()))
        .bind(entry.actor.as_str())
        .bind(entry.action.as_str())
        .bind(entry.reason.as_str());
    session.rows(query).await?;
    Ok(())
}

pub(super) async fn audited(session: &mut Session<'_>, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, Trouble> {
    let rows = session.rows(scoped(sql::AUDITED, scope)).await?;
    rows.iter().map(|row| row::audit(row, TICK)).collect()
}

fn column<'r, T>(row: &'r PgRow, name: &'static str) -> Result<T, Trouble>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(name).map_err(|_| Trouble::Row(name))
}

/// A list leaves younger claims alone: most of them end before anybody has read it, and their ends then cost no index.
const LATELY: Duration = Duration::from_secs(10);

/// How many entries of the line one statement looks at, and how many statements one round sends.
const WALK: i64 = 10_000;
const WALKS: usize = 100;

/// How many rows one batch of the sweep puts into another place while it looks for one that is over.
const SEARCH: u64 = 50_000;

const ROUNDS: usize = 3;

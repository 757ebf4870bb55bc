//! What requests, owners and workers write. It says in SQL what `idem_core::transition` says in Rust.

use std::time::{Duration, SystemTime};

use idem_core::store::{
    Answered, AnsweredEnd, AuditEntry, Claimed, ClosedCall, End, Fenced, Finish, Found, Guarded, NewClaim, Seen, Step,
    TakeOver, Tended, Verdicted,
};
use idem_core::{CallState, Fence, Keep, Ownership, Scope, Status, StatusName, StoredResponse};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::{Error, Trouble};
use crate::postgres::session::{Bound, Session, number, owned, scoped, token};
use crate::postgres::sql;
use crate::row::{self, Tick, class_columns, state_columns};

/// T1
pub(super) async fn claim(session: &mut Session<'_>, claim: &NewClaim) -> Result<Claimed, Trouble> {
    for _ in 0..ROUNDS {
        let query = scoped(sql::CLAIM, &claim.scope)
            .bind(&claim.hash.digest()[..])
            .bind(i64::from(claim.hash.form()))
            .bind(i64::from(claim.hash.version()))
            .bind(token(claim.owner.as_bytes()))
            .bind(micros(claim.lease));
        let rows = match session.rows(query).await {
            Ok(rows) => rows,
            // A rival's insert is not committed yet, or was just now.
            Err(Error::Locked(_)) => {
                let found = read(session, &claim.scope).await?;
                return Ok(found.map_or(Claimed::Held, |found| Claimed::Found(Box::new(found))));
            }
            Err(error) => return Err(error.into()),
        };
        let row = rows.first().ok_or(Trouble::Row("claimed_at"))?;
        if let Some(claimed_at) = instant(row, "claimed_at")? {
            let now = instant(row, "now")?.ok_or(Trouble::Row("now"))?;
            if now.duration_since(claimed_at).is_ok_and(|waited| waited > PROMPT) {
                return date(session, claim).await;
            }
            return Ok(Claimed::Inserted { now: claimed_at });
        }
        // Without a key there is no row: a rival committed after this statement began. The next one sees it.
        if row.try_get::<Option<&str>, _>("tenant_id").map_err(|_| Trouble::Row("tenant_id"))?.is_some()
            && let Some(found) = found(session, rows).await?
        {
            return Ok(Claimed::Found(Box::new(found)));
        }
    }
    Err(Error::Contended.into())
}

/// Gives a claim that was inserted late its whole lease.
async fn date(session: &mut Session<'_>, claim: &NewClaim) -> Result<Claimed, Trouble> {
    let owner = Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner };
    let query = owned(sql::DATE_CLAIM, &owner)?.bind(micros(claim.lease));
    // No row: what was left of the lease is over, and somebody has taken over.
    match fenced(session, query, &claim.scope).await? {
        Fenced::Written { now } => Ok(Claimed::Inserted { now }),
        Fenced::Refused(Some(found)) => Ok(Claimed::Found(found)),
        Fenced::Refused(None) => Err(Error::Contended.into()),
    }
}

/// The record of `scope` with its calls, as of one moment.
pub(super) async fn read(session: &mut Session<'_>, scope: &Scope) -> Result<Option<Found>, Trouble> {
    let rows = session.rows(scoped(sql::READ, scope)).await?;
    found(session, rows).await
}

/// A record from its rows, with its body from where it lies.
async fn found(session: &mut Session<'_>, mut rows: Vec<PgRow>) -> Result<Option<Found>, Trouble> {
    if rows.len() > 1 {
        // In the order of their first announcement; a number that does not read is told of below.
        rows.sort_by_key(|row| row.try_get::<i64, _>("call_id").ok());
    }
    let Some(first) = rows.first() else { return Ok(None) };
    let now = instant(first, "now")?.ok_or(Trouble::Row("now"))?;
    let Some(mut record) = row::records(&rows, TICK)?.into_iter().next() else { return Ok(None) };
    let day: Option<i64> = first.try_get("body_day").map_err(|_| Trouble::Row("body_day"))?;
    if let Some(day) = day
        && let Status::Completed(finished) | Status::FailedReplayable(finished) = &mut record.status
    {
        let query = scoped(sql::READ_BODY, &record.scope).bind(day).bind(number(record.fence.get())?);
        let body = session.rows(query).await?;
        // No row: the sweeper has dropped its day in between. What a record says without a body is right then.
        let body = body.first().map(|row| row.try_get(0).map_err(|_| Trouble::Row("body")));
        finished.response.body = body.transpose()?;
    }
    Ok(Some(Found { record, now }))
}

/// T8, T15
pub(super) async fn take_over(session: &mut Session<'_>, take: &TakeOver) -> Result<Guarded, Trouble> {
    let query = seen(sql::TAKE_OVER, &take.seen)?.bind(token(take.owner.as_bytes())).bind(micros(take.lease));
    guarded(session, seen_owner(query, &take.seen), &take.seen.scope).await
}

/// T10
pub(super) async fn take_to_ask(session: &mut Session<'_>, take: &TakeOver) -> Result<Guarded, Trouble> {
    let query = seen(sql::TAKE_TO_ASK, &take.seen)?.bind(token(take.owner.as_bytes())).bind(micros(take.lease));
    guarded(session, seen_owner(query, &take.seen), &take.seen.scope).await
}

/// T9, T9w, T9f, T13
pub(super) async fn tend(session: &mut Session<'_>, what: &Seen, to: &Tended) -> Result<Guarded, Trouble> {
    let (kind, wait, keep) = match to {
        Tended::Released { retry_in, keep } => ("released", retry_in, Some(keep)),
        Tended::Stranded { ask_in } => ("stranded", ask_in, None),
        Tended::Parked { ask_in } => ("parked", ask_in, None),
    };
    let query = seen(sql::TEND, what)?
        .bind(kind)
        .bind(micros(*wait))
        .bind(keep.map(|keep| micros(keep.window)))
        .bind(keep.map(|keep| micros(keep.metadata)));
    guarded(session, seen_owner(query, what), &what.scope).await
}

/// T3
pub(super) async fn step(session: &mut Session<'_>, owner: &Ownership, step: &Step) -> Result<Fenced, Trouble> {
    let plain = step.open.is_none() && step.closed.is_empty();
    let (resource, checkpoint) = (step.resource.as_ref(), step.checkpoint.as_ref());
    let mut query = owned(if plain { sql::STEP } else { sql::STEP_WITH_CALLS }, owner)?
        .bind(micros(step.lease))
        .bind(step.open.is_some())
        .bind(resource.map(|resource| resource.kind.as_str()))
        .bind(resource.map(|resource| resource.id.as_str()))
        .bind(checkpoint.map(|checkpoint| checkpoint.name.as_str()))
        .bind(checkpoint.map(|checkpoint| checkpoint.data.as_slice()))
        .bind(checkpoint.map(|checkpoint| i64::from(checkpoint.version)));
    if !plain {
        let open = step.open.as_ref();
        let is_opened = |call: &&ClosedCall| open.is_some_and(|open| open.name == call.name);
        let (opened, others): (Vec<_>, Vec<_>) = step.closed.iter().partition(is_opened);
        let class = open.map(|open| class_columns(open.class, TICK));
        query = closing(query, &others)
            .bind(open.map(|open| open.name.as_str()))
            .bind(class.map(|(name, _)| name))
            .bind(class.and_then(|(_, span)| span))
            .bind(open.map(|open| open.key.as_str()))
            .bind(opened.first().map(|call| state_columns(&call.state).0))
            .bind(opened.first().and_then(|call| state_columns(&call.state).1));
    }
    fenced(session, query, &owner.scope).await
}

/// T4 to T7
pub(super) async fn finish(session: &mut Session<'_>, owner: &Ownership, finish: &Finish) -> Result<Fenced, Trouble> {
    let ending = Ending { resource: finish.resource.as_ref(), ..Ending::of(&finish.end, &finish.closed) };
    end(session, owner, StatusName::InProgress, &ending).await
}

/// T11, T11r, T12, T13
pub(super) async fn answer(session: &mut Session<'_>, owner: &Ownership, said: &Answered) -> Result<Fenced, Trouble> {
    let (end, keep_parked) = match &said.end {
        AnsweredEnd::Ended(end) => (end, None),
        AnsweredEnd::StillUnknown { ask_in, park } => (&End::Unknown { ask_in: *ask_in }, Some(*park)),
    };
    let ending = Ending { resource: said.resource.as_ref(), keep_parked, ..Ending::of(end, &said.closed) };
    self::end(session, owner, StatusName::Unknown, &ending).await
}

async fn end(
    session: &mut Session<'_>,
    owner: &Ownership,
    from: StatusName,
    ending: &Ending<'_>,
) -> Result<Fenced, Trouble> {
    let plain = ending.closed.is_empty() && ending.large_body().is_none();
    let query = owned(if plain { sql::END } else { sql::END_WITH_MORE }, owner)?.bind(from.as_str());
    let query = if plain {
        ending.bind(query).bind(Vec::<&str>::new())
    } else {
        closing(ending.bind(query), &ending.closed.iter().collect::<Vec<_>>())
    };
    fenced(session, query, &owner.scope).await
}

/// T14
pub(super) async fn resolve(
    session: &mut Session<'_>,
    what: &Seen,
    verdict: &Verdicted,
    audit: &AuditEntry,
) -> Result<Guarded, Trouble> {
    let ask_again = End::Unknown { ask_in: Duration::ZERO };
    let ending = match verdict {
        Verdicted::Ended { closed, resource, end } => Ending { resource: resource.as_ref(), ..Ending::of(end, closed) },
        Verdicted::AskAgain => Ending::of(&ask_again, &[]),
    };
    let query = scoped(sql::RESOLVE, &what.scope)
        .bind(number(what.fence.get())?)
        .bind(number(what.revision.get())?)
        .bind(&what.hash.digest()[..]);
    let about = audit.scope.as_ref();
    let query = closing(ending.bind(query), &ending.closed.iter().collect::<Vec<_>>())
        .bind(i64::from(what.hash.form()))
        .bind(i64::from(what.hash.version()))
        .bind(what.status.as_str())
        .bind(audit.actor.as_str())
        .bind(audit.action.as_str())
        .bind(audit.reason.as_str())
        .bind(about.map(|scope| scope.tenant().as_str()))
        .bind(about.map(Scope::operation))
        .bind(about.map(|scope| scope.key().as_str()));
    guarded(session, seen_owner(query, what), &what.scope).await
}

/// How a record ends, as parameters.
struct Ending<'a> {
    status: StatusName,
    response: Option<&'a StoredResponse>,
    keep: Option<Keep>,
    wait: Option<Duration>,
    resource: Option<&'a idem_core::ResourceRef>,
    closed: &'a [ClosedCall],
    /// Whether a person who was called stays called, and whether one is called now.
    keep_parked: Option<bool>,
}

impl<'a> Ending<'a> {
    fn of(end: &'a End, closed: &'a [ClosedCall]) -> Self {
        let (response, keep, wait) = match end {
            End::Completed { response, keep } | End::FailedReplayable { response, keep } => {
                (Some(response), Some(*keep), None)
            }
            End::FailedRetryable { retry_in, keep } => (None, Some(*keep), Some(*retry_in)),
            End::Unknown { ask_in } => (None, None, Some(*ask_in)),
        };
        Self { status: end.status(), response, keep, wait, resource: None, closed, keep_parked: None }
    }

    fn body(&self) -> Option<&'a [u8]> {
        self.response.and_then(|response| response.body.as_deref())
    }

    fn large_body(&self) -> Option<&'a [u8]> {
        self.body().filter(|body| body.len() > LARGE)
    }

    /// $7 to $19
    fn bind<'q>(&self, query: Bound<'q>) -> Bound<'q>
    where
        'a: 'q,
    {
        query
            .bind(self.status.as_str())
            .bind(self.response.map(|response| i64::from(response.status)))
            .bind(self.response.map(StoredResponse::headers_to_bytes))
            .bind(self.body().filter(|body| body.len() <= LARGE))
            .bind(self.large_body())
            .bind(self.keep.map(|keep| micros(keep.window)))
            .bind(self.response.and(self.keep).map(|keep| micros(keep.body)))
            .bind(self.keep.map(|keep| micros(keep.metadata)))
            .bind(self.wait.map(micros))
            .bind(self.resource.map(|resource| resource.kind.as_str()))
            .bind(self.resource.map(|resource| resource.id.as_str()))
            .bind(self.keep_parked.is_some())
            .bind(self.keep_parked.unwrap_or(false))
    }
}

/// Three arrays: names, states, outcomes. A call that is closed twice in one write is closed as it was first.
fn closing<'q>(query: Bound<'q>, closed: &[&'q ClosedCall]) -> Bound<'q> {
    let mut names: Vec<&str> = Vec::new();
    let (mut states, mut outcomes) = (Vec::new(), Vec::new());
    for call in closed.iter().filter(|call| call.state != CallState::Open) {
        if !names.contains(&call.name.as_str()) {
            let (state, outcome) = state_columns(&call.state);
            names.push(&call.name);
            states.push(state);
            outcomes.push(outcome);
        }
    }
    query.bind(names).bind(states).bind(outcomes)
}

/// The last parameter of a statement: the attempt that owned what was seen.
fn seen_owner<'q>(query: Bound<'q>, seen: &'q Seen) -> Bound<'q> {
    query.bind(token(seen.owner.as_bytes()))
}

/// $4 to $9: what was seen.
fn seen<'q>(sql: &'static str, seen: &'q Seen) -> Result<Bound<'q>, Trouble> {
    Ok(scoped(sql, &seen.scope)
        .bind(number(seen.fence.get())?)
        .bind(number(seen.revision.get())?)
        .bind(&seen.hash.digest()[..])
        .bind(i64::from(seen.hash.form()))
        .bind(i64::from(seen.hash.version()))
        .bind(seen.status.as_str()))
}

async fn guarded(session: &mut Session<'_>, query: Bound<'_>, scope: &Scope) -> Result<Guarded, Trouble> {
    match session.rows(query).await {
        Ok(rows) => {
            if let Some(row) = rows.first() {
                return Ok(Guarded::Written { now: instant(row, "now")?.ok_or(Trouble::Row("now"))? });
            }
        }
        // Somebody writes it, perhaps its owner in a transaction of the application: it does not stand as it was seen.
        Err(Error::Locked(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Guarded::Changed(read(session, scope).await?.map(Box::new)))
}

async fn fenced(session: &mut Session<'_>, query: Bound<'_>, scope: &Scope) -> Result<Fenced, Trouble> {
    let rows = session.rows(query).await?;
    match rows.first() {
        Some(row) => Ok(Fenced::Written { now: instant(row, "now")?.ok_or(Trouble::Row("now"))? }),
        None => Ok(Fenced::Refused(read(session, scope).await?.map(Box::new))),
    }
}

pub(super) fn instant(row: &PgRow, column: &'static str) -> Result<Option<SystemTime>, Trouble> {
    let ticks: Option<i64> = row.try_get(column).map_err(|_| Trouble::Row(column))?;
    ticks.map(|ticks| TICK.instant(ticks).ok_or(Trouble::Row(column))).transpose()
}

/// A span as a parameter, at most 8000 years: the statements cut what they add it to at the year 9999.
pub(super) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).map_or(LONGEST, |span| span.min(LONGEST))
}

pub(super) const TICK: Tick = Tick::MICROSECOND;

const LONGEST: i64 = 8000 * 366 * 24 * 60 * 60 * 1_000_000;

/// The largest body that lies in the record's row, in bytes. A completed row must fit beside its first version: a page
/// has 8 KiB.
const LARGE: usize = 1024;

/// What may lie between the dating and the writing of an insert that waits for nobody, also on a busy server. So much of
/// its lease a claim may lack.
const PROMPT: Duration = Duration::from_millis(20);

/// How often a claim is sent when a rival commits while it looks.
const ROUNDS: usize = 3;

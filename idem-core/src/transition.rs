//! What each write does to a [`Record`], as pure functions: the memory store applies them, the SQL stores say the same
//! in SQL, and the conformance suite holds them together. Numbers (T1 …) are those of `docs/protocol.md`.
//!
//! Every function returns whether the write was allowed; a refused one has changed nothing.

use std::time::{Duration, SystemTime};

use crate::calls::{CallRecord, CallState};
use crate::record::{Fence, Finished, Keep, Ownership, Record, Revision, Status, StoredResponse, after};
use crate::store::{Answered, AnsweredEnd, ClosedCall, End, Finish, NewClaim, Seen, Step, TakeOver, Tended, Verdicted};

/// T1: the record that an insert makes.
#[must_use]
pub fn insert(claim: &NewClaim, now: SystemTime) -> Record {
    Record {
        scope: claim.scope.clone(),
        hash: claim.hash,
        fence: Fence::FIRST,
        owner: claim.owner,
        revision: Revision::FIRST,
        attempts: 1,
        created_at: now,
        status: Status::InProgress { locked_until: after(now, claim.lease) },
        calls: Vec::new(),
        ask_attempts: 0,
        resource: None,
        checkpoint: None,
    }
}

/// T2: a new lease for the owner.
#[must_use]
pub fn renew(record: &mut Record, owner: &Ownership, lease: Duration, now: SystemTime) -> bool {
    owned(record, owner) && {
        record.status = Status::InProgress { locked_until: after(now, lease) };
        touch(record)
    }
}

/// T3: announcements, outcomes and the resource, with a full lease.
#[must_use]
pub fn step(record: &mut Record, owner: &Ownership, step: &Step, now: SystemTime) -> bool {
    owned(record, owner) && {
        close(record, &step.closed);
        if let Some(new) = &step.open {
            match record.calls.iter_mut().find(|call| call.name == new.name) {
                // Open: it stays, so that the provider's retention counts from its first call. Done: it is done.
                Some(call) if call.state != CallState::Withdrawn => {}
                Some(call) => {
                    call.state = CallState::Open;
                    call.class = new.class;
                    call.opened_at = now;
                }
                None => record.calls.push(CallRecord {
                    name: new.name.clone(),
                    class: new.class,
                    key: new.key.clone(),
                    state: CallState::Open,
                    opened_at: now,
                }),
            }
        }
        if let Some(resource) = &step.resource {
            record.resource = Some(resource.clone());
        }
        if let Some(checkpoint) = &step.checkpoint {
            record.checkpoint = Some(checkpoint.clone());
        }
        record.status = Status::InProgress { locked_until: after(now, step.lease) };
        touch(record)
    }
}

/// T4 to T7: the end of an attempt.
#[must_use]
pub fn finish(record: &mut Record, owner: &Ownership, finish: &Finish, now: SystemTime) -> bool {
    owned(record, owner) && {
        close(record, &finish.closed);
        if let Some(resource) = &finish.resource {
            record.resource = Some(resource.clone());
        }
        record.status = ended(&finish.end, now);
        touch(record)
    }
}

/// T8, T15: the next owner.
#[must_use]
pub fn take_over(record: &mut Record, take: &TakeOver, now: SystemTime) -> bool {
    unchanged(record, &take.seen) && time_has_come(&record.status, now) && {
        record.fence = record.fence.next();
        record.owner = take.owner;
        record.attempts += 1;
        record.ask_attempts = 0;
        record.status = Status::InProgress { locked_until: after(now, take.lease) };
        touch(record)
    }
}

/// T9, T9w, T9f, T13: nobody runs it. A late owner writes nothing any more: its writes ask for a record in progress.
#[must_use]
pub fn tend(record: &mut Record, seen: &Seen, to: &Tended, now: SystemTime) -> bool {
    unchanged(record, seen)
        && match (&mut record.status, to) {
            (Status::InProgress { locked_until } | Status::Unknown { locked_until: Some(locked_until), .. }, _)
                if now < *locked_until =>
            {
                false
            }
            (Status::InProgress { .. }, Tended::Released { retry_in, keep }) => {
                record.status = ended(&End::FailedRetryable { retry_in: *retry_in, keep: *keep }, now);
                touch(record)
            }
            (Status::InProgress { .. } | Status::FailedRetryable { .. }, Tended::Stranded { ask_in }) => {
                record.status = ended(&End::Unknown { ask_in: *ask_in }, now);
                touch(record)
            }
            (Status::InProgress { .. }, Tended::Parked { ask_in }) => {
                record.status = unknown(now, *ask_in, Some(now));
                touch(record)
            }
            (Status::FailedRetryable { parked_at, .. }, Tended::Parked { .. }) => {
                parked_at.get_or_insert(now);
                touch(record)
            }
            (Status::Unknown { parked_at, .. }, Tended::Parked { ask_in }) => {
                record.status = unknown(now, *ask_in, parked_at.or(Some(now)));
                touch(record)
            }
            _ => false,
        }
}

/// T10: a worker asks.
#[must_use]
pub fn take_to_ask(record: &mut Record, take: &TakeOver, now: SystemTime) -> bool {
    unchanged(record, &take.seen)
        && match &mut record.status {
            Status::Unknown { locked_until: Some(until), .. } if now < *until => false,
            Status::Unknown { next_ask_at, .. } if now < *next_ask_at => false,
            Status::Unknown { locked_until, .. } => {
                *locked_until = Some(after(now, take.lease));
                record.fence = record.fence.next();
                record.owner = take.owner;
                record.ask_attempts = record.ask_attempts.saturating_add(1);
                touch(record)
            }
            _ => false,
        }
}

/// T11, T11r, T12, T13: what its providers said.
#[must_use]
pub fn answer(record: &mut Record, owner: &Ownership, answered: &Answered, now: SystemTime) -> bool {
    // Without a lease nobody asks: an attempt that ended unknown has the same fence and token, and no answer.
    let Status::Unknown { locked_until: Some(_), parked_at, .. } = record.status else { return false };
    record.fence == owner.fence && record.owner == owner.owner && {
        close(record, &answered.closed);
        if let Some(resource) = &answered.resource {
            record.resource = Some(resource.clone());
        }
        record.status = match &answered.end {
            AnsweredEnd::Ended(end) => ended(end, now),
            AnsweredEnd::StillUnknown { ask_in, park } => unknown(now, *ask_in, parked_at.or(park.then_some(now))),
        };
        touch(record)
    }
}

/// T14: what a person decides of a parked record. The fence moves: a worker that asks right now writes nothing.
#[must_use]
pub fn resolve(record: &mut Record, seen: &Seen, verdict: &Verdicted, now: SystemTime) -> bool {
    unchanged(record, seen) && record.is_parked() && {
        match verdict {
            Verdicted::Ended { closed, resource, end } => {
                close(record, closed);
                if let Some(resource) = resource {
                    record.resource = Some(resource.clone());
                }
                record.status = ended(end, now);
            }
            Verdicted::AskAgain => record.status = unknown(now, Duration::ZERO, None),
        }
        record.fence = record.fence.next();
        touch(record)
    }
}

/// Something was learned about a call: a record that waits to be asked is due at once.
pub fn learn(record: &mut Record, now: SystemTime) {
    if let Status::Unknown { next_ask_at, .. } = &mut record.status
        && *next_ask_at > now
    {
        *next_ask_at = now;
        touch(record);
    }
}

/// Since when nobody cares for a record that is not settled: its lease is over, its next attempt is due with a call
/// left open, its providers are to be asked. `None`: nobody has to.
#[must_use]
pub fn due_at(record: &Record) -> Option<SystemTime> {
    match &record.status {
        Status::InProgress { locked_until } => Some(*locked_until),
        Status::FailedRetryable { next_attempt_at, .. } if record.has_open_call() => Some(*next_attempt_at),
        Status::Unknown { next_ask_at, locked_until, .. } => {
            Some(locked_until.unwrap_or(*next_ask_at).max(*next_ask_at))
        }
        _ => None,
    }
}

/// Whether a worker has to look at a record now. Clients have `grace` to come by themselves; nobody comes for one that
/// is unknown.
#[must_use]
pub fn is_due(record: &Record, grace: Duration, now: SystemTime) -> bool {
    let grace = if matches!(record.status, Status::Unknown { .. }) { Duration::ZERO } else { grace };
    due_at(record).is_some_and(|since| after(since, grace) <= now)
}

/// What one round of cleaning does to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaned {
    /// Nothing.
    Kept,
    /// Its body went, the rest of its answer stays.
    Body,
    /// T16
    Expired,
    /// T17: it goes altogether.
    Purged,
}

/// T16, T17 and bodies whose retention is over.
#[must_use]
pub fn sweep(record: &mut Record, purge_tombstones: bool, now: SystemTime) -> Cleaned {
    let open = record.has_open_call();
    match &mut record.status {
        Status::Completed(finished) | Status::FailedReplayable(finished) if finished.expires_at <= now => {
            record.status = Status::Expired { purge_at: finished.purge_at };
        }
        Status::FailedRetryable { expires_at, purge_at, .. } if *expires_at <= now && !open => {
            record.status = Status::Expired { purge_at: *purge_at };
        }
        Status::Completed(finished) | Status::FailedReplayable(finished)
            if finished.body_until <= now && finished.response.body.is_some() =>
        {
            finished.response.body = None;
            touch(record);
            return Cleaned::Body;
        }
        Status::Expired { purge_at } if *purge_at <= now && (record.calls.is_empty() || purge_tombstones) => {
            return Cleaned::Purged;
        }
        _ => return Cleaned::Kept,
    }
    // What a call was is no secret, what it gave may be.
    for call in &mut record.calls {
        if let CallState::Applied(outcome) | CallState::Rejected(outcome) = &mut call.state {
            outcome.clear();
        }
    }
    record.checkpoint = None;
    touch(record);
    Cleaned::Expired
}

fn ended(end: &End, now: SystemTime) -> Status {
    let finished = |response: &StoredResponse, keep: &Keep| {
        let expires_at = after(now, keep.window);
        Finished {
            response: response.clone(),
            at: now,
            expires_at,
            body_until: after(now, keep.body).min(expires_at),
            purge_at: after(expires_at, keep.metadata),
        }
    };
    match end {
        End::Completed { response, keep } => Status::Completed(finished(response, keep)),
        End::FailedReplayable { response, keep } => Status::FailedReplayable(finished(response, keep)),
        End::FailedRetryable { retry_in, keep } => {
            let expires_at = after(now, keep.window);
            Status::FailedRetryable {
                next_attempt_at: after(now, *retry_in),
                expires_at,
                purge_at: after(expires_at, keep.metadata),
                parked_at: None,
            }
        }
        End::Unknown { ask_in } => unknown(now, *ask_in, None),
    }
}

fn unknown(now: SystemTime, ask_in: Duration, parked_at: Option<SystemTime>) -> Status {
    Status::Unknown { next_ask_at: after(now, ask_in), locked_until: None, parked_at }
}

fn owned(record: &Record, owner: &Ownership) -> bool {
    record.fence == owner.fence && record.owner == owner.owner && matches!(record.status, Status::InProgress { .. })
}

fn unchanged(record: &Record, seen: &Seen) -> bool {
    record.fence == seen.fence
        && record.owner == seen.owner
        && record.revision == seen.revision
        && record.hash == seen.hash
        && record.status.name() == seen.status
}

fn time_has_come(status: &Status, now: SystemTime) -> bool {
    match status {
        Status::InProgress { locked_until } => *locked_until <= now,
        Status::FailedRetryable { next_attempt_at, .. } => *next_attempt_at <= now,
        _ => false,
    }
}

/// An outcome closes an open call; a call that is closed stays as it was closed first.
fn close(record: &mut Record, closed: &[ClosedCall]) {
    for outcome in closed {
        if let Some(call) = record.calls.iter_mut().find(|call| call.name == outcome.name && call.is_open()) {
            call.state = outcome.state.clone();
        }
    }
}

fn touch(record: &mut Record) -> bool {
    record.revision = record.revision.next();
    true
}

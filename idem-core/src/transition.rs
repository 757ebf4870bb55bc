//! What each write does to a [`Record`], as pure functions: the memory store applies them, the SQL stores say the same
//! in SQL, and the conformance suite holds them together. Numbers (T1 …) are those of `docs/protocol.md`.
//!
//! Every function returns whether the write was allowed; a refused one has changed nothing.

use std::time::{Duration, SystemTime};

use crate::calls::{CallRecord, CallState};
use crate::record::{Fence, Finished, Ownership, Record, Revision, Status, StoredResponse};
use crate::store::{ClosedCall, End, Finish, NewClaim, Seen, Step, TakeOver};

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
        resource: None,
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
        let finished = |response: &StoredResponse, window| Finished {
            response: response.clone(),
            at: now,
            expires_at: after(now, window),
        };
        record.status = match &finish.end {
            End::Completed { response, window } => Status::Completed(finished(response, *window)),
            End::FailedReplayable { response, window } => Status::FailedReplayable(finished(response, *window)),
            End::FailedRetryable { retry_in, window } => Status::FailedRetryable {
                next_attempt_at: after(now, *retry_in),
                expires_at: after(now, *window),
                parked_at: None,
            },
            End::Unknown { ask_in } => Status::Unknown { next_ask_at: after(now, *ask_in), parked_at: None },
        };
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
        record.status = Status::InProgress { locked_until: after(now, take.lease) };
        touch(record)
    }
}

/// T9: nobody's. The late owner writes nothing any more: its writes ask for a record in progress.
#[must_use]
pub fn strand(record: &mut Record, seen: &Seen, ask_in: Duration, now: SystemTime) -> bool {
    let in_progress = matches!(record.status, Status::InProgress { .. });
    unchanged(record, seen) && in_progress && time_has_come(&record.status, now) && {
        record.status = Status::Unknown { next_ask_at: after(now, ask_in), parked_at: None };
        touch(record)
    }
}

/// `now + span`, but never beyond the last second of the year 9999: "for ever" is a legal span (`Duration::MAX`), and
/// no database and no date format goes much further. Stores that count in SQL date their rows by it too.
#[must_use]
pub fn after(now: SystemTime, span: Duration) -> SystemTime {
    let last = SystemTime::UNIX_EPOCH + LAST_SECOND;
    now.checked_add(span).map_or(last, |then| then.min(last))
}

const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

fn owned(record: &Record, owner: &Ownership) -> bool {
    record.fence == owner.fence && record.owner == owner.owner && matches!(record.status, Status::InProgress { .. })
}

fn unchanged(record: &Record, seen: &Seen) -> bool {
    record.fence == seen.fence
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

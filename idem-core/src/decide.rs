//! The one decision table: what a second request gets, and what an attempt's end becomes. Pure; the engine and the
//! model checker call the same functions.

use std::time::{Duration, SystemTime};

mod evidence;
mod tend;

pub use evidence::{contradicts, denies, weightiest};
pub use tend::{Asked, Concluded, Finding, Tend, asked, concluded, tend};

use crate::calls::{CallRecord, rerunnable};
use crate::hash::{CommandHash, Verdict};
use crate::record::{Finished, Record, Status};
use crate::rules::Rules;

/// What a request that met a record gets, or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The stored answer again.
    Replay,
    /// It is done, but its body was too large to keep, or its time is over.
    NotKept,
    /// The key belongs to another command.
    Mismatch {
        /// Whether the first finally failed with no call left open, so that a new key duplicates nothing.
        safe_new_key: bool,
    },
    /// Somebody runs.
    InProgress {
        /// When to ask again.
        retry_after: Duration,
    },
    /// T8, T15: run, if the record still stands as it was seen.
    TakeOver,
    /// T9: nobody may run; say so in the record, if it still stands as it was seen.
    Strand,
    /// It failed and may be retried, not yet.
    RetryLater {
        /// When.
        retry_after: Duration,
    },
    /// T10: nobody knows how it ended, and it is time to ask; the request may, with one short question.
    Ask,
    /// Nobody knows how it ended, and it is not time to ask, or somebody does.
    OutcomeUnknown {
        /// When to ask again.
        retry_after: Duration,
    },
    /// Only a person can tell.
    Unresolved,
    /// The window is over.
    Expired,
    /// The record was written by a newer contract: this build must not judge it.
    ContractUnknown {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The record was written by a contract that this build no longer keeps.
    ContractRetired,
}

/// What a request gets whose key has a record.
///
/// `verdict` compares the request's command with the record's hash, and comes first, in every state: an answer of any
/// kind under a key is given to the command that the key was used for.
#[must_use]
pub fn decide(record: &Record, verdict: Verdict, now: SystemTime, rules: &Rules) -> Decision {
    match verdict {
        Verdict::Same => decide_same(record, now, rules),
        Verdict::Different => Decision::Mismatch {
            safe_new_key: matches!(record.status, Status::FailedReplayable(_)) && !record.has_open_call(),
        },
        Verdict::Newer => Decision::ContractUnknown { retry_after: LONGEST_WAIT },
        Verdict::Retired => Decision::ContractRetired,
    }
}

/// What the client of an attempt gets that has lost its record, `own` being the hash that the attempt was claimed with:
/// what stands there now. Where that has another hash the key had another life meanwhile (forgotten, or lost in a
/// failover, and used again), and its answer is not this client's: it comes again, and is compared by its command.
#[must_use]
pub fn decide_lost(record: &Record, own: CommandHash, now: SystemTime, rules: &Rules) -> Decision {
    match record.hash == own {
        true => decide_same(record, now, rules),
        false => Decision::InProgress { retry_after: SHORTEST_WAIT },
    }
}

fn decide_same(record: &Record, now: SystemTime, rules: &Rules) -> Decision {
    let may_rerun = rerunnable(&record.calls, now, rules.margin());
    match &record.status {
        Status::InProgress { locked_until } if now < *locked_until => {
            Decision::InProgress { retry_after: poll_after(record.created_at, *locked_until, now) }
        }
        Status::InProgress { .. } if may_rerun => Decision::TakeOver,
        Status::InProgress { .. } => Decision::Strand,
        Status::Completed(Finished { expires_at, .. }) | Status::FailedReplayable(Finished { expires_at, .. })
            if *expires_at <= now =>
        {
            Decision::Expired
        }
        Status::Completed(finished) | Status::FailedReplayable(finished) => match finished.response.body {
            Some(_) if now < finished.body_until => Decision::Replay,
            _ => Decision::NotKept,
        },
        // A call left open keeps the record alive past its window: what it did is still to be found out.
        Status::FailedRetryable { expires_at, .. } if *expires_at <= now && !record.has_open_call() => {
            Decision::Expired
        }
        Status::FailedRetryable { parked_at: Some(_), .. } => Decision::Unresolved,
        Status::FailedRetryable { .. } if !may_rerun => Decision::Unresolved,
        Status::FailedRetryable { next_attempt_at, .. } if now < *next_attempt_at => {
            Decision::RetryLater { retry_after: until(*next_attempt_at, now) }
        }
        Status::FailedRetryable { .. } => Decision::TakeOver,
        Status::Unknown { parked_at: Some(_), .. } => Decision::Unresolved,
        Status::Unknown { next_ask_at, locked_until, .. }
            if *next_ask_at <= now && locked_until.is_none_or(|until| until <= now) =>
        {
            Decision::Ask
        }
        Status::Unknown { next_ask_at, .. } => {
            Decision::OutcomeUnknown { retry_after: until(*next_ask_at, now).max(SHORTEST_WAIT) }
        }
        Status::Expired { .. } => Decision::Expired,
    }
}

/// How an attempt ended, as far as the table looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The work answered, with this status.
    Replied(u16),
    /// The work said that this is final.
    Replayable,
    /// The work said that it may be tried again.
    Retryable,
    /// The work said that it does not know.
    Unknown,
    /// A call was refused for good, and the work passed that on.
    Refused,
    /// An error without an answer of its own, or a panic.
    Broke,
}

/// What becomes of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// T4
    Completed,
    /// T5
    FailedReplayable,
    /// T6
    FailedRetryable,
    /// T7
    Unknown,
}

/// What the end of an attempt becomes. Read from the top, as the table in `docs/http.md` is.
#[must_use]
pub fn becomes(ended: Ended, calls: &[CallRecord], now: SystemTime, rules: &Rules) -> Becomes {
    let open = calls.iter().any(CallRecord::is_open);
    let may_rerun = rerunnable(calls, now, rules.margin());
    match ended {
        Ended::Replied(200..=399) => Becomes::Completed,
        Ended::Replayable => Becomes::FailedReplayable,
        // "May be tried again" cannot be said of a call that must not be made twice.
        Ended::Retryable if may_rerun => Becomes::FailedRetryable,
        Ended::Unknown => Becomes::Unknown,
        _ if !may_rerun => Becomes::Unknown,
        _ if open => Becomes::FailedRetryable,
        Ended::Refused => Becomes::FailedReplayable,
        Ended::Replied(401 | 403 | 407 | 408 | 425 | 429) => Becomes::FailedRetryable,
        Ended::Replied(400..=499) => Becomes::FailedReplayable,
        _ => Becomes::FailedRetryable,
    }
}

const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// When a client asks again for a record in progress: from 1 s, growing with the record's age to 10 s, never beyond
/// the lease (by then somebody may take over).
fn poll_after(created_at: SystemTime, locked_until: SystemTime, now: SystemTime) -> Duration {
    let age = now.duration_since(created_at).unwrap_or_default();
    (age / 4).min(until(locked_until, now)).clamp(SHORTEST_WAIT, LONGEST_WAIT)
}

fn until(then: SystemTime, now: SystemTime) -> Duration {
    then.duration_since(now).unwrap_or_default()
}

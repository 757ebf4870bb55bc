//! The one decision table: what a second request gets, and what an attempt's end becomes. Pure; the engine and the
//! model checker call the same functions.

use std::time::{Duration, SystemTime};

use crate::calls::{CallRecord, rerunnable};
use crate::hash::Verdict;
use crate::record::{Finished, Record, Status};

/// The spans that an operation is run by.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// How long nobody may take over from an owner that gives no sign of life. Default 30 s.
    pub lease: Duration,
    /// After that long the heartbeat gives a hanging owner up. Default 5 min.
    pub max_run: Duration,
    /// How long an answer is replayed, counted from the moment it was stored. Default 24 h.
    pub window: Duration,
    /// The wait before the second attempt; doubles with each, up to [`Self::backoff_cap`]. Default 1 s.
    pub backoff: Duration,
    /// The longest wait before an attempt. Default 60 s.
    pub backoff_cap: Duration,
    /// The largest body that is kept, in bytes. Default 256 KiB.
    pub body_cap: usize,
    /// How long a client waits for an answer whose storing fails. Default 5 s.
    pub patience: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(5 * 60),
            window: Duration::from_secs(24 * 60 * 60),
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(60),
            body_cap: 256 * 1024,
            patience: Duration::from_secs(5),
        }
    }
}

impl Rules {
    /// How far a repeated call must keep clear of the provider's forgetting: the larger of the lease and 5 min.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.lease.max(Duration::from_secs(5 * 60))
    }

    /// How often the heartbeat renews a lease: three times within one.
    #[must_use]
    pub fn beat(&self) -> Duration {
        self.lease / 3
    }

    /// The wait after the `attempts`-th attempt failed, before jitter.
    #[must_use]
    pub fn backoff_after(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.backoff.saturating_mul(1 << doublings).min(self.backoff_cap)
    }
}

/// What a request that met a record gets, or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The stored answer again.
    Replay,
    /// It is done, but its body was too large to keep.
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
    /// Recovery owns it.
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
            Some(_) => Decision::Replay,
            None => Decision::NotKept,
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
        Status::Unknown { next_ask_at, .. } => {
            Decision::OutcomeUnknown { retry_after: until(*next_ask_at, now).max(SHORTEST_WAIT) }
        }
        Status::Expired => Decision::Expired,
    }
}

/// How an attempt ended, as far as the table looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

//! What a worker does with a record that no client comes for: the same table, from the other side.

use std::time::{Duration, SystemTime};

use crate::calls::{CallClass, CallRecord, CallState, rerunnable};
use crate::record::{Record, Status, after};
use crate::rules::Rules;

/// What a worker does with a record now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tend {
    /// Nothing yet, or nothing ever: it is settled, somebody runs, or its clients still have their time.
    Leave,
    /// T9w: in progress and abandoned; the next client may run it.
    Release,
    /// T9, T9f: nobody knows how it ended; its providers are asked from now on.
    Strand,
    /// T9, T9f, T13: nobody knows, and nobody can be asked. A person is called.
    Park,
    /// T10: take it and ask its providers.
    Ask,
}

/// What a worker does with `record`. `askable` says of a call's name whether its provider can be asked.
#[must_use]
pub fn tend(record: &Record, askable: &dyn Fn(&str) -> bool, now: SystemTime, rules: &Rules) -> Tend {
    let may_rerun = rerunnable(&record.calls, now, rules.margin());
    let open = record.has_open_call();
    let can_ask = record.open_calls().any(|call| askable(&call.name));
    match &record.status {
        Status::InProgress { locked_until } if now < after(*locked_until, rules.grace) => Tend::Leave,
        Status::InProgress { .. } if can_ask => Tend::Strand,
        Status::InProgress { .. } if may_rerun => Tend::Release,
        Status::InProgress { .. } => Tend::Park,
        Status::FailedRetryable { .. } if !open => Tend::Leave,
        Status::FailedRetryable { next_attempt_at, .. } if now < after(*next_attempt_at, rules.grace) => Tend::Leave,
        Status::FailedRetryable { .. } if can_ask => Tend::Strand,
        Status::FailedRetryable { parked_at: Some(_), .. } => Tend::Leave,
        // It may still be run by a client; a person is called before that ends.
        Status::FailedRetryable { expires_at, .. } if may_rerun && now < *expires_at => Tend::Leave,
        Status::FailedRetryable { .. } => Tend::Park,
        Status::Unknown { locked_until: Some(until), .. } if now < *until => Tend::Leave,
        Status::Unknown { next_ask_at, .. } if can_ask => {
            if *next_ask_at <= now {
                Tend::Ask
            } else {
                Tend::Leave
            }
        }
        Status::Unknown { parked_at: Some(_), .. } => Tend::Leave,
        Status::Unknown { .. } => Tend::Park,
        Status::Completed(_) | Status::FailedReplayable(_) | Status::Expired { .. } => Tend::Leave,
    }
}

/// What a provider said of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It happened; the outcome, as the work would have stored it.
    Applied(Vec<u8>),
    /// It was refused for good.
    Rejected(Vec<u8>),
    /// The provider does not know it.
    NotApplied,
    /// The provider cannot say yet, or could not be asked.
    StillUnknown,
}

/// What a finding makes of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It is closed like that.
    Closed(CallState),
    /// It stays open, and is asked for again after that long (before jitter).
    Again(Duration),
    /// It stays open, and a person is called.
    GiveUp,
}

/// What a finding makes of `call`, of a record whose providers were asked `asks` times.
///
/// "It does not know it" withdraws a call only where that is proof: the provider dedupes and has not forgotten yet, so
/// that a late arrival is the same effect as the next try; or its quiescence is over, so that nothing can arrive late.
#[must_use]
pub fn asked(call: &CallRecord, finding: Finding, asks: u32, now: SystemTime, rules: &Rules) -> Asked {
    let quiet = match call.class {
        CallClass::Dedupes { .. } => call.may_repeat(now, rules.margin()),
        CallClass::QueryOnly { quiescence } => after(call.opened_at, quiescence) <= now,
        CallClass::Neither => false,
    };
    let last = match call.class {
        CallClass::Dedupes { retention } => rules.horizon.min(retention.saturating_sub(rules.margin())),
        CallClass::QueryOnly { .. } | CallClass::Neither => rules.horizon,
    };
    match finding {
        Finding::Applied(outcome) => Asked::Closed(CallState::Applied(outcome)),
        Finding::Rejected(outcome) => Asked::Closed(CallState::Rejected(outcome)),
        Finding::NotApplied if quiet => Asked::Closed(CallState::Withdrawn),
        Finding::NotApplied | Finding::StillUnknown if after(call.opened_at, last) <= now => Asked::GiveUp,
        Finding::NotApplied | Finding::StillUnknown => Asked::Again(rules.ask_again_after(asks)),
    }
}

/// What the findings of one round make of their record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concluded<'a> {
    /// T11: no call is open any more, and this one is known: what it means is the application's to say.
    Known(&'a CallRecord),
    /// T11r, T12: the next attempt goes on, with what is known by now.
    Resume,
    /// T13: it is asked again.
    StillUnknown,
}

/// What a round of questions comes to that leaves a record's calls as `calls`, and has closed those of the names
/// `closed`, in that order.
#[must_use]
pub fn concluded<'a>(
    calls: &'a [CallRecord],
    closed: impl DoubleEndedIterator<Item = &'a str>,
    now: SystemTime,
    rules: &Rules,
) -> Concluded<'a> {
    let mut closed = closed.rev().filter_map(|name| calls.iter().find(|call| call.name == name)).peekable();
    if closed.peek().is_none() {
        return Concluded::StillUnknown;
    }
    if calls.iter().any(CallRecord::is_open) {
        // The next attempt goes on where it may.
        let may_rerun = rerunnable(calls, now, rules.margin());
        return if may_rerun { Concluded::Resume } else { Concluded::StillUnknown };
    }
    closed.find(|call| call.state != CallState::Withdrawn).map_or(Concluded::Resume, Concluded::Known)
}

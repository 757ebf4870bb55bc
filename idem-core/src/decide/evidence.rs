//! When what was learned from outside says something else than what a record has come to.

use crate::calls::{CallRecord, CallState};
use crate::record::{Record, Status};

/// Whether evidence denies that a call stands, or is about to stand, so: it happened and was taken for refused or never
/// made, or the other way round. That one attempt never arrived denies nothing, since another one may have.
#[must_use]
pub fn denies(told: &CallState, stands: &CallState) -> bool {
    matches!(
        (told, stands),
        (CallState::Applied(_), CallState::Rejected(_) | CallState::Withdrawn)
            | (CallState::Rejected(_), CallState::Applied(_))
    )
}

/// Whether evidence contradicts what a record has come to about one of its calls. One that nobody has closed stands as
/// its record's answer says.
#[must_use]
pub fn contradicts(record: &Record, call: &CallRecord, told: &CallState) -> bool {
    match (&call.state, &record.status) {
        (CallState::Open, Status::Completed(_)) => matches!(told, CallState::Rejected(_)),
        (CallState::Open, Status::FailedReplayable(_)) => matches!(told, CallState::Applied(_)),
        (CallState::Open, _) => false,
        (stands, _) => denies(told, stands),
    }
}

/// Of all that was told of one call the word that counts: where money may have moved, that it did.
#[must_use]
pub fn weightiest<'a>(told: impl IntoIterator<Item = &'a CallState>) -> Option<&'a CallState> {
    told.into_iter().max_by_key(|state| match state {
        CallState::Applied(_) => 3,
        CallState::Rejected(_) => 2,
        CallState::Withdrawn => 1,
        CallState::Open => 0,
    })
}

//! What a request gets that ran nothing, and what the one got that ran.

use std::time::{Duration, SystemTime};

use crate::record::{Record, ResourceRef, Status, StatusName, StoredResponse};
use crate::reply::Reply;

/// The answer to a request whose key had a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The stored answer again.
    Replay {
        /// As it was kept.
        response: StoredResponse,
        /// End of the replay window.
        expires_at: SystemTime,
    },
    /// It is done, but its body was not kept: too large, or never to be stored ([`StoredResponse::schema_version`]).
    NotKept {
        /// Status and headers, without the body.
        response: StoredResponse,
        /// What the first request made.
        resource: Option<ResourceRef>,
        /// End of the replay window.
        expires_at: SystemTime,
    },
    /// The key belongs to another command.
    Mismatch(Original),
    /// The first request still runs.
    InProgress {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The first request failed and may be retried, not yet.
    RetryLater {
        /// When.
        retry_after: Duration,
    },
    /// Nobody knows how the first request ended; recovery finds out.
    OutcomeUnknown {
        /// When to ask again.
        retry_after: Duration,
    },
    /// Nobody knows how the first request ended, and only a person can find out.
    Unresolved {
        /// What the first request made, or was about to.
        resource: Option<ResourceRef>,
    },
    /// The replay window is over.
    Expired {
        /// What the first request made.
        resource: Option<ResourceRef>,
    },
    /// The record was written by a newer release's contract.
    ContractUnknown {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The record was written by a contract that this release no longer keeps.
    ContractRetired {
        /// What the first request made.
        resource: Option<ResourceRef>,
    },
}

/// What became of the request that a key was first used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Where its record stands.
    pub state: StatusName,
    /// When the key was first used.
    pub created_at: SystemTime,
    /// What it made, where known.
    pub resource: Option<ResourceRef>,
    /// The status it was answered with, where it was.
    pub status: Option<u16>,
    /// The value of its answer's `Location` header, where it had one.
    pub location: Option<Vec<u8>>,
    /// Whether a new key duplicates nothing: the first finally failed, with no call left open.
    pub safe_new_key: bool,
}

impl Original {
    pub(crate) fn of(record: &Record, safe_new_key: bool) -> Self {
        let response = match &record.status {
            Status::Completed(finished) | Status::FailedReplayable(finished) => Some(&finished.response),
            _ => None,
        };
        Self {
            state: record.status.name(),
            created_at: record.created_at,
            resource: record.resource.clone(),
            status: response.map(|response| response.status),
            location: response.and_then(|response| response.header("location")).map(<[u8]>::to_vec),
            safe_new_key,
        }
    }
}

/// What one request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The work ran, and this is its answer: stored, and from now on the answer of every later request.
    Done {
        /// The answer, with all its headers.
        reply: Reply,
        /// End of the replay window.
        expires_at: SystemTime,
    },
    /// The work ran and failed; a later request may run it again.
    Failed {
        /// The work's own answer, where it gave one.
        reply: Option<Reply>,
        /// When a later request may run.
        retry_after: Duration,
    },
    /// The work ran, and nobody knows whether a call of it happened; recovery finds out.
    Unknown {
        /// The work's own answer, where it gave one.
        reply: Option<Reply>,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The work ended, but how could not be stored yet. It is stored when the store is back, as long as this
    /// process lives.
    NotStored {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The work did not run, or its record was taken over meanwhile.
    Second(Answer),
}

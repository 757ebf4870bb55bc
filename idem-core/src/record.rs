//! What a store remembers of one key: the [`Record`], its [`Status`], and what guards its writes.

mod ownership;

use std::fmt;
use std::time::{Duration, SystemTime};

pub use ownership::{Fence, OwnerToken, Ownership, Revision};
use serde::de::DeserializeOwned;

use crate::calls::CallRecord;
use crate::hash::CommandHash;
use crate::key::Scope;

/// What the command made, by the application's words: a type and an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceRef {
    /// The resource's type, `payment`.
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// An answer as it is kept: status, the headers that may be replayed, and the body's very bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoredResponse {
    /// The HTTP status (or what another transport takes for it).
    pub status: u16,
    /// Header names in lower case, with their values' bytes, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body; `None` where it was too large to keep.
    pub body: Option<Vec<u8>>,
}

impl StoredResponse {
    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_slice())
    }

    /// The headers as bytes for a store's column: `name: value` lines, each ended by a line feed. A legal header
    /// value has no line feed.
    #[must_use]
    pub fn headers_to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        }
        bytes
    }

    /// Reads what [`Self::headers_to_bytes`] wrote; `None` for anything else.
    #[must_use]
    pub fn headers_from_bytes(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let pair = |line: &[u8]| {
            let line = line.strip_suffix(b"\n")?;
            let colon = line.windows(2).position(|two| two == b": ")?;
            Some((String::from_utf8(line[..colon].to_vec()).ok()?, line[colon + 2..].to_vec()))
        };
        bytes.split_inclusive(|&byte| byte == b'\n').map(pair).collect()
    }

    /// The whole answer as bytes: the status, the headers, an empty line, the body, as HTTP has it.
    #[must_use]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}\n", self.status).into_bytes();
        bytes.extend(self.headers_to_bytes());
        if let Some(body) = &self.body {
            bytes.push(b'\n');
            bytes.extend_from_slice(body);
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; `None` for anything else.
    #[must_use]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let status = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
        // The head with the line feed before it, so that no header at all looks like the others.
        let rest = &bytes[end..];
        let (headers, body) = match rest.windows(2).position(|two| two == b"\n\n") {
            Some(blank) => (&rest[1..=blank], Some(rest[blank + 2..].to_vec())),
            None => (&rest[1..], None),
        };
        Some(Self { status, headers: Self::headers_from_bytes(headers)?, body })
    }
}

/// Where a record stands. Each variant carries what is known there, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    /// Somebody runs, or did when the lease was last renewed.
    InProgress {
        /// From then on another request may take over.
        locked_until: SystemTime,
    },
    /// The work ended well; its answer is the answer of every later request.
    Completed(Finished),
    /// The work was refused for good; the refusal is the answer of every later request.
    FailedReplayable(Finished),
    /// The work failed, and may run again.
    FailedRetryable {
        /// Not before then.
        next_attempt_at: SystemTime,
        /// End of the window, counted from this attempt; with a call left open it does not end.
        expires_at: SystemTime,
        /// When the metadata is forgotten.
        purge_at: SystemTime,
        /// Since when only a person can help (an open call that nobody can ask about).
        parked_at: Option<SystemTime>,
    },
    /// Nobody knows whether an announced call happened; nobody runs. UNKNOWN_REQUIRES_RECOVERY in full.
    Unknown {
        /// When its providers are asked next.
        next_ask_at: SystemTime,
        /// Until when a worker asks; another one must not.
        locked_until: Option<SystemTime>,
        /// Since when only a person can help.
        parked_at: Option<SystemTime>,
    },
    /// The replay window is over: the answer is gone, what the key meant is not.
    Expired {
        /// When that too is forgotten, unless a call was ever announced.
        purge_at: SystemTime,
    },
}

/// A final answer and how long it is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finished {
    /// The answer.
    pub response: StoredResponse,
    /// When it was stored.
    pub at: SystemTime,
    /// End of the replay window.
    pub expires_at: SystemTime,
    /// Until when its body is kept, at most the end of the window.
    pub body_until: SystemTime,
    /// When what remains then, the metadata, is forgotten too.
    pub purge_at: SystemTime,
}

impl Status {
    /// The name that stores and answers use.
    #[must_use]
    pub fn name(&self) -> StatusName {
        match self {
            Self::InProgress { .. } => StatusName::InProgress,
            Self::Completed(_) => StatusName::Completed,
            Self::FailedReplayable(_) => StatusName::FailedReplayable,
            Self::FailedRetryable { .. } => StatusName::FailedRetryable,
            Self::Unknown { .. } => StatusName::Unknown,
            Self::Expired { .. } => StatusName::Expired,
        }
    }
}

/// A [`Status`] without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatusName {
    /// `in_progress`
    InProgress,
    /// `completed`
    Completed,
    /// `failed_replayable`
    FailedReplayable,
    /// `failed_retryable`
    FailedRetryable,
    /// `unknown_requires_recovery`
    Unknown,
    /// `expired`
    Expired,
}

impl StatusName {
    /// All six, in the order of a record's life.
    pub const ALL: [Self; 6] = [
        Self::InProgress,
        Self::Completed,
        Self::FailedReplayable,
        Self::FailedRetryable,
        Self::Unknown,
        Self::Expired,
    ];

    /// The text that stores write and answers show.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::FailedReplayable => "failed_replayable",
            Self::FailedRetryable => "failed_retryable",
            Self::Unknown => "unknown_requires_recovery",
            Self::Expired => "expired",
        }
    }

    /// Reads a stored text back; `None` for one that no release of idem wrote.
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }
}

impl fmt::Display for StatusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is remembered of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Whose record.
    pub scope: Scope,
    /// What the first command meant, by the rules it was written with. It never changes.
    pub hash: CommandHash,
    /// Grows with every owner.
    pub fence: Fence,
    /// The attempt that owns it, or owned it last.
    pub owner: OwnerToken,
    /// Grows with every write.
    pub revision: Revision,
    /// How often the work was started.
    pub attempts: u32,
    /// How often its providers were asked since nobody knows.
    pub ask_attempts: u32,
    /// When the key was first seen.
    pub created_at: SystemTime,
    /// Where it stands.
    pub status: Status,
    /// The calls that were announced.
    pub calls: Vec<CallRecord>,
    /// What the command made, where the work said so.
    pub resource: Option<ResourceRef>,
    /// How far the work had come, in its own words.
    pub checkpoint: Option<Checkpoint>,
}

/// How far the work had come: what the next attempt may start from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The point's name, `reserved`.
    pub name: String,
    /// The version of the data's format, by the application.
    pub version: u32,
    /// The data, as the application serialised it.
    pub data: Vec<u8>,
}

impl Checkpoint {
    /// The data, as [`Claim::checkpoint`](crate::Claim::checkpoint) was given it. Look at name and version first, or let
    /// [`Claim::resume_from`](crate::Claim::resume_from) do it: an error here, passed on with `?`, comes again in every
    /// attempt.
    ///
    /// # Errors
    /// Where it is no `T`.
    pub fn data_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.data)
    }
}

impl Record {
    /// What its present owner must show.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        Ownership { scope: self.scope.clone(), fence: self.fence, owner: self.owner }
    }

    /// Whether any call was announced and not closed.
    #[must_use]
    pub fn has_open_call(&self) -> bool {
        self.open_calls().next().is_some()
    }

    /// The calls that were announced and not closed.
    pub fn open_calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.calls.iter().filter(|call| call.is_open())
    }

    /// Whether only a person can help.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        let (Status::FailedRetryable { parked_at, .. } | Status::Unknown { parked_at, .. }) = &self.status else {
            return false;
        };
        parked_at.is_some()
    }
}

/// How long an end is remembered, counted from the moment it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How long the answer is replayed.
    pub window: Duration,
    /// How long its body is kept, at most the window.
    pub body: Duration,
    /// How long it is known after the window what the key meant.
    pub metadata: Duration,
}

/// `now + span`, but never beyond the last second of the year 9999: "for ever" is a legal span (`Duration::MAX`), and
/// no database and no date format goes much further. Stores that count in SQL date their rows by it too.
#[must_use]
pub fn after(now: SystemTime, span: Duration) -> SystemTime {
    let last = SystemTime::UNIX_EPOCH + LAST_SECOND;
    now.checked_add(span).map_or(last, |then| then.min(last))
}

const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

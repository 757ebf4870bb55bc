//! What happened, for whoever counts: [`Event`]s and their [`Observer`]. Where they go is the application's choice. The
//! feature `metrics` brings an observer along that counts them, the feature `tracing` one that logs them; a pair of
//! observers tells both.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tracing")]
pub use self::tracing::TracingObserver;
#[cfg(feature = "metrics")]
pub use metrics::MetricsObserver;

use crate::calls::CallState;
use crate::record::StatusName;
use crate::store::{Oldest, Swept};

/// Something that happened to a record, or to the store. Keys and tenants are not in it: they are the client's.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request owns its record, and the work begins.
    Claimed {
        /// The operation.
        operation: &'a str,
        /// How it came to own it.
        how: How,
        /// Which attempt it is.
        attempt: u32,
    },
    /// A request was answered from the record.
    Answered {
        /// The operation.
        operation: &'a str,
        /// With what.
        kind: AnswerKind,
        /// How old the record is.
        age: Duration,
    },
    /// The work ended, and how is stored.
    Ended {
        /// The operation.
        operation: &'a str,
        /// Where the record stands now.
        status: StatusName,
        /// How long the work took.
        ran: Duration,
        /// How long it took to store its end.
        stored: Duration,
    },
    /// The work ended and cannot be stored yet, or not at all.
    NotStored {
        /// The operation.
        operation: &'a str,
    },
    /// An owner found that its record is not its own any more.
    Lost {
        /// The operation.
        operation: &'a str,
    },
    /// Work has run for longer than its operation's `max_run`: its lease is not renewed any more, and another may take
    /// over while it hangs. An alert, each time.
    Hung {
        /// The operation.
        operation: &'a str,
        /// How long it has run.
        ran: Duration,
    },
    /// A call was announced, made, and came to this.
    Called {
        /// The operation.
        operation: &'a str,
        /// The call.
        call: &'a str,
        /// What is known of it.
        fate: CallFate,
        /// How long it took.
        took: Duration,
    },
    /// The store failed a request.
    StoreFailed {
        /// Its stable code.
        code: &'a str,
    },
    /// A record that nobody ran was brought further, by a worker or by a client that came back.
    Recovered {
        /// The operation.
        operation: &'a str,
        /// What it did.
        step: RecoveryStep,
    },
    /// Evidence says of a call something else than its record has come to: an effect that nobody answers for, or an
    /// answer about none. An alert, each time; a person compares what the provider has.
    Contradicted {
        /// The operation.
        operation: &'a str,
        /// The call.
        call: &'a str,
        /// What the record says of it; where nobody closed it: what its answer says.
        stands: CallFate,
        /// What the evidence says.
        told: CallFate,
    },
    /// A person is needed: an alert, once for each record that is parked.
    Parked {
        /// The operation.
        operation: &'a str,
        /// How long nobody has known.
        age: Duration,
    },
    /// A round of cleaning.
    Swept(Swept),
    /// How long those records have waited that wait longest, of all in the store, as a worker saw it.
    Oldest(Oldest),
    /// A worker gave a sign of life that long ago, as another one, or the engine of a request, saw it.
    WorkerSeen {
        /// How long ago.
        silence: Duration,
    },
    /// No worker has given a sign of life for that long: nobody recovers. Told by a worker that begins, and once a minute
    /// by each engine that gets requests.
    NoWorker {
        /// How long.
        silence: Duration,
    },
    /// A round of a worker panicked. Its loop goes on after a pause; what it was at may be left for the next round.
    WorkerBroke {
        /// `recovery` or `sweep`.
        round: &'a str,
    },
}

/// How a request came to own its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It was the first.
    First,
    /// The owner before gave no sign of life.
    TakeOver,
    /// The attempt before had failed.
    Retry,
}

/// What a request was answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// The stored answer.
    Replay,
    /// Another command under the key.
    Mismatch,
    /// In progress.
    InProgress,
    /// Failed, not due yet.
    RetryLater,
    /// Unknown.
    Unknown,
    /// Unknown, and only a person can tell.
    Unresolved,
    /// Done, but its body is not kept.
    NotKept,
    /// The window is over.
    Expired,
    /// Of a contract that this build does not know, or keep.
    Contract,
}

/// What is known of a call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    /// It happened.
    Applied,
    /// It was refused for good.
    Rejected,
    /// It never left.
    NeverLeft,
    /// Nobody knows.
    Unknown,
}

/// What was done with a record that nobody ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryStep {
    /// An abandoned record may be run by the next client.
    Released,
    /// Nobody knows how it ended; its providers are asked.
    Stranded,
    /// The provider said that the call happened.
    Applied,
    /// The provider had refused it.
    Rejected,
    /// The provider does not know it: it may be made again.
    NotApplied,
    /// The provider could not say.
    StillUnknown,
    /// A person decided on it.
    ByHand,
}

/// Who is told. Called where things happen, so it must be quick. One that panics is not told of that event, and
/// disturbs nobody else.
pub trait Observer: Send + Sync {
    /// Is told of one event.
    fn observe(&self, event: &Event<'_>);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn observe(&self, _: &Event<'_>) {}
}

/// Tells one that may panic: neither a request, nor a worker, nor the heartbeat's thread ends by who counts them.
pub(crate) struct Unbroken(pub(crate) Arc<dyn Observer>);

impl Observer for Unbroken {
    fn observe(&self, event: &Event<'_>) {
        if catch_unwind(AssertUnwindSafe(|| self.0.observe(event))).is_err() {
            ::tracing::error!(?event, "an observer panicked");
        }
    }
}

/// Tells the first, then the second.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn observe(&self, event: &Event<'_>) {
        self.0.observe(event);
        self.1.observe(event);
    }
}

impl AnswerKind {
    /// The kind as metrics and logs name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Mismatch => "mismatch",
            Self::InProgress => "in_progress",
            Self::RetryLater => "retry_later",
            Self::Unknown => "unknown",
            Self::Unresolved => "unresolved",
            Self::NotKept => "not_kept",
            Self::Expired => "expired",
            Self::Contract => "contract",
        }
    }
}

impl fmt::Display for AnswerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl How {
    /// The word that metrics and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::TakeOver => "take_over",
            Self::Retry => "retry",
        }
    }
}

impl CallFate {
    /// The word that metrics and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::NeverLeft => "never_left",
            Self::Unknown => "unknown",
        }
    }
}

impl From<&CallState> for CallFate {
    fn from(state: &CallState) -> Self {
        match state {
            CallState::Applied(_) => Self::Applied,
            CallState::Rejected(_) => Self::Rejected,
            CallState::Withdrawn => Self::NeverLeft,
            CallState::Open => Self::Unknown,
        }
    }
}

impl RecoveryStep {
    /// The word that metrics and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Stranded => "stranded",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::NotApplied => "not_applied",
            Self::StillUnknown => "still_unknown",
            Self::ByHand => "by_hand",
        }
    }
}

//! The state that the checker explores. The record is the shipped one; the rest is what idem does not rule: clients,
//! processes, calls on their way, providers, the application's row, the clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use idem_core::decide::{Ended, Tend};
use idem_core::{OwnerToken, Record};

/// The world's clock counts in these. It is the margin that the shipped rules have at least.
pub(crate) const TICK: Duration = Duration::from_secs(5 * 60);
pub(crate) const CALLS: usize = 2;
pub(crate) const CLIENTS: usize = 3;
pub(crate) const FLIGHTS: usize = 4;
/// Requests that are worked on, and the worker behind them.
pub(crate) const SLOTS: usize = 4;
pub(crate) const WORKER: usize = SLOTS - 1;

pub(crate) fn at(tick: u8) -> SystemTime {
    SystemTime::UNIX_EPOCH + TICK * u32::from(tick)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) faults: u8,
    pub(crate) row: Option<Arc<Record>>,
    /// The application's row, written with the end of the command: whose command it is.
    pub(crate) business: Option<u8>,
    /// What a failover would bring back of both.
    pub(crate) standby: (Option<Arc<Record>>, Option<u8>),
    pub(crate) providers: [Provider; CALLS],
    pub(crate) flights: [Option<Flight>; FLIGHTS],
    pub(crate) slots: [Slot; SLOTS],
    pub(crate) clients: [Client; CLIENTS],
    /// How many owners there were: the next one's token.
    pub(crate) owners: u8,
    pub(crate) told: Told,
}

/// One request that is worked on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    Free,
    /// About to claim. It knows its token once a claim of its own was written and the answer lost.
    Arrived {
        client: u8,
        token: Option<u8>,
        asked: bool,
    },
    /// It looked, and there was no record.
    Inserting {
        client: u8,
    },
    /// It read a record and decided; the write is still to be made.
    Decided {
        client: u8,
        seen: Arc<Record>,
        write: Write,
    },
    Running(Arc<Run>),
    Asking(Arc<Ask>),
}

/// What a decision has to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    TakeOver,
    Strand,
    Ask,
    Tend(Tend),
}

/// A worker has no client.
pub(crate) const NOBODY: u8 = u8::MAX;

/// An attempt: what it was given, and what it has not written yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) client: u8,
    /// The record as the attempt knows it: its fence, its token, the calls and what it learned of them.
    pub(crate) record: Record,
    pub(crate) next: Next,
    /// Names of calls whose outcome is still to be written.
    pub(crate) unwritten: [bool; CALLS],
    /// Calls that this attempt announced first.
    pub(crate) first: [bool; CALLS],
    pub(crate) announced_at: u8,
    /// A call had no answer, and the work went on.
    pub(crate) broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    /// Looks for the application's row under the derived id.
    Look,
    Announce(u8),
    Send(u8),
    Wait(u8),
    Finish(Ended),
}

/// A round of questions to the providers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) client: u8,
    pub(crate) record: Record,
    pub(crate) now: u8,
    pub(crate) found: [Option<Said>; CALLS],
}

/// What a provider said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Applied,
    Rejected,
    NotApplied,
    StillUnknown,
}

/// A call between its process and its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Flight {
    pub(crate) slot: u8,
    pub(crate) token: u8,
    pub(crate) call: u8,
    pub(crate) key: u8,
    pub(crate) command: u8,
    /// It arrives by then, or never.
    pub(crate) until: u8,
}

/// What one provider has done and remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Provider {
    /// By downstream key; the shipped one is always the same.
    pub(crate) known: [Option<Known>; 2],
    /// How often each command took effect.
    pub(crate) effects: [u8; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) command: u8,
    pub(crate) at: u8,
    pub(crate) rejected: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) requests: u8,
    pub(crate) got: Option<Got>,
}

/// An answer after which a client need not ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Got {
    Done,
    Refused,
    Mismatch,
    Expired,
    /// A person was called.
    Unresolved,
}

/// What is watched, and nothing acts on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Told {
    /// How many records this key had.
    pub(crate) lives: u8,
    /// How often each call was sent in this record's life.
    pub(crate) sent: [u8; CALLS],
    /// The answer that was given in this record's life.
    pub(crate) body: Option<[u8; 3]>,
    pub(crate) failed_over: bool,
    pub(crate) late_write: bool,
    pub(crate) changed: bool,
    pub(crate) crossed: bool,
    pub(crate) untrue: bool,
}

pub(crate) fn token(number: u8) -> OwnerToken {
    OwnerToken::from_stored([number; 16])
}

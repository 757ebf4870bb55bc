//! What one run of the model checker looks at: who there is, what the providers promise, what may go wrong.

use std::time::Duration;

use idem_core::{CallClass, Rules};

use crate::mutations::Mutation;
use crate::world::TICK;

/// What a provider really does, and whether it can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One effect of one key until it forgets, and it can be asked.
    DedupesAndAnswers,
    /// One effect of one key until it forgets.
    Dedupes,
    /// An effect of every call that arrives; it can be asked.
    Answers,
    /// An effect of every call that arrives.
    Neither,
}

impl Kind {
    pub(crate) fn askable(self) -> bool {
        matches!(self, Self::DedupesAndAnswers | Self::Answers)
    }

    pub(crate) fn dedupes(self) -> bool {
        matches!(self, Self::DedupesAndAnswers | Self::Dedupes)
    }
}

/// Bounds and habits of one configuration. Spans are in ticks.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    /// The calls of each run, in order.
    pub(crate) calls: &'static [Kind],
    /// Each client's command (0 or 1), and how often it sends it.
    pub(crate) clients: &'static [(u8, u8)],
    /// How many requests are worked on at once.
    pub(crate) slots: u8,
    /// How much may go wrong.
    pub(crate) faults: u8,
    /// When the world's clock stops.
    pub(crate) until: u8,
    /// Providers may refuse a call for good.
    pub(crate) declines: bool,
    /// Work that got no answer of a call goes on with the next one, and fails in the end.
    pub(crate) goes_on: bool,
    /// How long a provider remembers a key.
    pub(crate) retention: u8,
    pub(crate) window: u8,
    pub(crate) metadata: u8,
    pub(crate) sweeps: bool,
    /// The database may fail over once, to a standby that lags.
    pub(crate) fails_over: bool,
    pub(crate) mutation: Option<Mutation>,
}

impl Config {
    /// Two requests of one client at once, two faults; the window is longer than the world lasts, and is there for what
    /// comes after it.
    pub(crate) const fn new(name: &'static str, calls: &'static [Kind]) -> Self {
        Self {
            name,
            calls,
            clients: &[(0, 2)],
            slots: 2,
            faults: 2,
            until: 6,
            declines: false,
            goes_on: false,
            retention: NEVER,
            window: 12,
            metadata: 12,
            sweeps: false,
            fails_over: false,
            mutation: None,
        }
    }

    /// The same for one tick more, but for where a provider would forget a call that a failover has lost: nothing is
    /// promised of that.
    pub(crate) fn lasting_longer(self) -> Self {
        let more = u8::from(!self.fails_over || self.retention == NEVER);
        Self { until: self.until + more, ..self }
    }

    pub(crate) fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether a key may have a second life, by forgetting or by a failover.
    pub(crate) fn has_lives(&self) -> bool {
        self.sweeps || self.fails_over
    }

    /// What the application declares of a call; the truth, unless a mutation lies.
    pub(crate) fn class(&self, kind: Kind) -> CallClass {
        let quiescence = if self.is(Mutation::NotAppliedIsFinal) { Duration::ZERO } else { ticks(QUIESCENCE) };
        let retention = if self.is(Mutation::NoRetentionBound) { Duration::MAX } else { ticks(self.retention) };
        match kind {
            Kind::DedupesAndAnswers | Kind::Dedupes => CallClass::Dedupes { retention },
            Kind::Answers => CallClass::QueryOnly { quiescence },
            Kind::Neither => CallClass::Neither,
        }
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            lease: TICK,
            window: ticks(self.window),
            body_retention: Duration::MAX,
            metadata_retention: ticks(self.metadata),
            grace: TICK,
            ask_lease: TICK,
            ask_cap: TICK,
            horizon: ticks(4),
            ask_parked: ticks(2),
            backoff: TICK,
            backoff_cap: TICK,
            ..Rules::default()
        }
    }
}

fn ticks(span: u8) -> Duration {
    if span == NEVER { Duration::MAX } else { TICK * u32::from(span) }
}

/// A span that does not end.
pub(crate) const NEVER: u8 = u8::MAX;
/// A call arrives at most so long after it was announced, or never.
pub(crate) const DELAY: u8 = 1;
/// By then a call that is not there will not come any more.
const QUIESCENCE: u8 = DELAY + 1;

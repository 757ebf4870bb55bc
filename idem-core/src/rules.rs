//! The spans and limits that an operation is run by.

use std::time::Duration;

use crate::record::Keep;

/// The spans that an operation is run by.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// How long nobody may take over from an owner that gives no sign of life. Default 30 s.
    pub lease: Duration,
    /// After that long the heartbeat gives a hanging owner up. Default 5 min.
    pub max_run: Duration,
    /// How long an answer is replayed, counted from the moment it was stored. Default 24 h.
    pub window: Duration,
    /// How long the answer's body is kept, at most the window. Default: the window, however long that is.
    pub body_retention: Duration,
    /// How long it is known after the window what a key meant. Default 30 days.
    pub metadata_retention: Duration,
    /// How long workers leave a record to its clients after its lease, or its next attempt, is due. Not zero: a client that
    /// retries in time should meet no worker. Default 60 s.
    pub grace: Duration,
    /// How long a worker asks without a sign of life before another may. Default 30 s.
    pub ask_lease: Duration,
    /// The longest wait between two questions to a provider. Default 15 min.
    pub ask_cap: Duration,
    /// After that long without an answer a person is called. Default 72 h; the margin before a provider's
    /// retention ends comes first.
    pub horizon: Duration,
    /// How often the providers of a parked record are still asked. Default 1 h.
    pub ask_parked: Duration,
    /// The wait before the second attempt; doubles with each, up to [`Self::backoff_cap`]. Default 1 s.
    pub backoff: Duration,
    /// The longest wait before an attempt. Default 60 s.
    pub backoff_cap: Duration,
    /// The largest body that is kept, in bytes. Default 256 KiB.
    pub body_cap: usize,
    /// How long a client waits for an answer whose storing fails. Default 5 s.
    pub patience: Duration,
    /// What is kept of a success for later requests. Default: the answer.
    pub replay: Replay,
}

/// Which promise an operation makes to its second request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// The first answer again, byte for byte, for as long as the window lasts.
    #[default]
    Stored,
    /// The resource as it is today: of a success only its status, the resource
    /// ([`Claim::makes`](crate::Claim::makes)) and the version of the answer's form are kept, whoever ends the record:
    /// the work, recovery or an operator. A later request gets [`Answer::NotKept`](crate::Answer::NotKept) with them,
    /// and whoever gives it to a client writes the answer anew. For bodies that must not be stored (personal data,
    /// signed addresses, one-time tokens). A refusal is kept as it is, since it has no resource that it could be
    /// written from, so it must not hold any.
    Rebuilt {
        /// The version of the form that answers have now.
        schema_version: u32,
    },
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(5 * 60),
            window: Duration::from_secs(24 * 60 * 60),
            body_retention: Duration::MAX,
            metadata_retention: Duration::from_secs(30 * 24 * 60 * 60),
            grace: Duration::from_secs(60),
            ask_lease: Duration::from_secs(30),
            ask_cap: Duration::from_secs(15 * 60),
            horizon: Duration::from_secs(72 * 60 * 60),
            ask_parked: Duration::from_secs(60 * 60),
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(60),
            body_cap: 256 * 1024,
            patience: Duration::from_secs(5),
            replay: Replay::Stored,
        }
    }
}

impl Rules {
    /// How far a repeated call must keep clear of the provider's forgetting: the larger of the lease and 5 min.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.lease.max(Duration::from_secs(5 * 60))
    }

    /// How long an end that is stored now is remembered.
    #[must_use]
    pub fn keep(&self) -> Keep {
        Keep { window: self.window, body: self.body_retention.min(self.window), metadata: self.metadata_retention }
    }

    /// The wait before the next question after `asked` questions, before jitter.
    #[must_use]
    pub fn ask_again_after(&self, asked: u32) -> Duration {
        doubled(self.backoff, asked.saturating_sub(1)).min(self.ask_cap)
    }

    /// How often the heartbeat renews a lease: three times within one.
    #[must_use]
    pub fn beat(&self) -> Duration {
        self.lease / 3
    }

    /// The wait after the `attempts`-th attempt failed, before jitter.
    #[must_use]
    pub fn backoff_after(&self, attempts: u32) -> Duration {
        doubled(self.backoff, attempts.saturating_sub(1)).min(self.backoff_cap)
    }
}

fn doubled(span: Duration, times: u32) -> Duration {
    span.saturating_mul(1 << times.min(31))
}

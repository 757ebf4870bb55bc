//! What goes wrong at the provider, on request.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a charge meets, once.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// So many charges go well before it.
    #[serde(default)]
    pub after: u32,
    /// It takes that long before it is booked.
    #[serde(default)]
    pub delay_ms: u64,
    /// It goes wrong.
    #[serde(default)]
    pub fault: Option<Fault>,
}

/// How a charge goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection: nothing is charged, and the caller knows.
    Unreachable,
    /// 503, before anything is charged. The caller cannot know that it was before.
    Unavailable,
    /// The request is lost on its way: nothing is charged, and the caller does not know.
    LostRequest,
    /// It is charged, and the connection breaks before the answer is through.
    LostAnswer,
    /// It is charged, and the answer comes when the caller has given up waiting.
    TimeOut,
    /// The caller gives up waiting and asks what became of the charge; the question overtakes the request, which is
    /// booked right after the provider has said that it knows nothing of it.
    Overtaken,
    /// The account's bank says no: a proper answer.
    Declined,
    /// It is charged, and the service that asked for it dies before it can write that down. (The provider runs in the
    /// service's process, and takes it along.)
    Crash,
}

impl Trouble {
    /// A charge that goes wrong so.
    #[must_use]
    pub fn of(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }
}

//! Makes the second request safe.
//!
//! A client that saw no answer sends its request again. Whether that is the same command is decided by its
//! [`CommandHash`]: a command states, field by field, what makes two requests one ([`IdempotentCommand`]). What the
//! second request gets is decided by the record of the first ([`Engine`]).
//!
//! | feature | default | gives |
//! | --- | --- | --- |
//! | `derive` | yes | `#[derive(IdempotentCommand)]` and `#[derive(Canonical)]` |
//! | `rust_decimal` | yes | `Decimal` as a field type, and [`exact`] |
//! | `chrono`, `time`, `jiff`, `uuid` | no | the instants, dates, durations and ids of these crates |
//! | `serde_json` | no | `serde_json::Value` |
//! | `float` | no | `f32` and `f64` under `#[idem(float)]` |
//! | `reqwest` | no | `provider`: what a failed HTTP call says of itself |
//! | `snapshot` | no | `assert_contract!`, on top of insta |
//! | `metrics`, `tracing` | no | observers that count and log; with `tracing` the work runs in a span |
//! | `tokio` | no | `worker`: the loops of recovery and sweeping |
//! | `testing` | no | `conformance!`, for authors of stores |

mod calls;
pub mod canonical;
mod clock;
pub mod command;
pub mod consumer;
pub mod contract;
pub mod decide;
#[cfg(feature = "derive")]
mod derive;
mod engine;
pub mod events;
#[cfg(feature = "rust_decimal")]
pub mod exact;
pub mod hash;
mod heartbeat;
mod key;
mod memory;
pub mod operator;
#[cfg(feature = "reqwest")]
pub mod provider;
mod reconciler;
mod record;
pub mod recovery;
mod reply;
pub mod retention;
mod rules;
#[cfg(feature = "snapshot")]
pub mod snapshot;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transition;
#[cfg(feature = "tokio")]
pub mod worker;

pub use calls::{CallClass, CallRecord, CallSpec, CallState, DownstreamKey, KeyForm, rerunnable, resource_id};
pub use canonical::{Canonical, Sink};
pub use clock::{Clock, SystemClock};
pub use command::IdempotentCommand;
pub use contract::Contract;
#[cfg(feature = "derive")]
pub use derive::{Canonical, IdempotentCommand};
pub use engine::{
    Answer, Begin, Call, Claim, Committed, ConfigError, Engine, EngineBuilder, LocalClaim, NoOwnId, NotCalled,
    NotCheckpointed, NotCommitted, Original, OtherNamespace, Outcome, RegisterError, UnreadableCheckpoint,
};
pub use hash::{CommandHash, InvalidHash, Verdict};
pub use key::{IdempotencyKey, InvalidKey, InvalidTenant, Scope, Tenant};
pub use memory::{MemoryStore, MemoryTx};
pub use reconciler::{Reconciler, Settled, Transient};
pub use record::{
    Checkpoint, Fence, Finished, Keep, OwnerToken, Ownership, Record, ResourceRef, Revision, Status, StatusName,
    StoredResponse,
};
pub use reply::{CallError, Failure, Fate, Reply};
pub use rules::{Replay, Rules};
pub use store::{Store, StoreError};

/// What the macros of this crate expand to. Not an interface: any release may change it.
#[doc(hidden)]
pub mod __private {
    pub use crate::canonical::__private::*;
    pub use crate::command::__private::*;
    pub use crate::command::IdempotentCommand;
    pub use crate::contract::Contract;
    #[cfg(feature = "snapshot")]
    pub use crate::snapshot::assert_contract;
    #[cfg(feature = "snapshot")]
    pub use insta;
}

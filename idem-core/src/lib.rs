//! Makes the second request safe.

mod calls;
mod canonical;
mod clock;
mod command;
pub mod decide;
mod engine;
mod hash;
mod heartbeat;
mod key;
mod memory;
mod record;
mod reply;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transition;

pub use calls::{CallClass, CallRecord, CallState, DownstreamKey, rerunnable, resource_id};
pub use canonical::Sink;
pub use clock::{Clock, SystemClock};
pub use command::IdempotentCommand;
pub use decide::Rules;
pub use engine::{Answer, Begin, Call, Claim, ConfigError, Engine, EngineBuilder, NotCalled, Original, Outcome};
pub use hash::{CommandHash, InvalidHash, Verdict};
pub use key::{IdempotencyKey, InvalidKey, InvalidTenant, Scope, Tenant};
pub use memory::MemoryStore;
pub use record::{
    Fence, Finished, OwnerToken, Ownership, Record, ResourceRef, Revision, Status, StatusName, StoredResponse,
};
pub use reply::{CallError, Failure, Fate, Reply};
pub use store::{Store, StoreError};

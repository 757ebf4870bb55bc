//! Makes the second request safe: canonical command hashes and their locked contract.
//!
//! A client that saw no answer sends its request again. Whether that is the same command is decided here: a command
//! states, field by field, what makes two requests one, and its [`CommandHash`] is taken of exactly that.
//!
//! | feature | default | gives |
//! | --- | --- | --- |
//! | `derive` | yes | `#[derive(IdempotentCommand)]` and `#[derive(Canonical)]` |
//! | `rust_decimal` | yes | `Decimal` as a field type, and [`exact`] |
//! | `chrono`, `time`, `jiff`, `uuid` | no | the instants, dates, durations and ids of these crates |
//! | `serde_json` | no | `serde_json::Value` |
//! | `float` | no | `f32` and `f64` under `#[idem(float)]` |
//! | `snapshot` | no | `assert_contract!`, on top of insta |

pub mod canonical;
pub mod command;
pub mod contract;
#[cfg(feature = "derive")]
mod derive;
#[cfg(feature = "rust_decimal")]
pub mod exact;
pub mod hash;
#[cfg(feature = "snapshot")]
pub mod snapshot;

pub use canonical::{Canonical, Sink};
pub use command::IdempotentCommand;
pub use contract::Contract;
#[cfg(feature = "derive")]
pub use derive::{Canonical, IdempotentCommand};
pub use hash::{CommandHash, InvalidHash, Verdict};

/// What the macros of this crate expand to. Not an interface: any release may change it.
#[doc(hidden)]
pub mod __private {
    pub use crate::canonical::__private::*;
    pub use crate::command::IdempotentCommand;
    #[cfg(feature = "snapshot")]
    pub use crate::snapshot::{Snapshot, snapshot};
    #[cfg(feature = "snapshot")]
    pub use insta;
}

//! The commands of these tests.

use idem_axum::IdempotentCommand;
use idem_core::{CommandHash, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pay {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// The same operation as a newer release has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PayNewer {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// Another operation with the same members.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refund {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// One whose members come from the path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cancel {
    pub(crate) branch: String,
    pub(crate) order: u64,
}

/// Commands by hand, until they are derived.
macro_rules! command {
    ($($command:ty = $operation:literal, $version:literal;)+) => {
        $(impl IdempotentCommand for $command {
            const OPERATION: &'static str = $operation;
            const VERSION: u32 = $version;

            fn command_hash(&self) -> CommandHash {
                CommandHash::from_parts(1, $version, Sha256::digest(serde_json::to_vec(self).unwrap())).unwrap()
            }

            fn verdict(&self, stored: &CommandHash) -> Verdict {
                match stored.version() {
                    version if version > Self::VERSION => Verdict::Newer,
                    version if version < Self::VERSION => Verdict::Retired,
                    _ if *stored == self.command_hash() => Verdict::Same,
                    _ => Verdict::Different,
                }
            }
        })+
    };
}

command! {
    Pay = "pay", 1;
    PayNewer = "pay", 2;
    Refund = "refund", 1;
    Cancel = "cancel", 1;
}

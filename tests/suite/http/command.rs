//! The commands of these tests.

use idem_core::IdempotentCommand;
use serde::Deserialize;

/// A payment.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub(crate) struct Pay {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// The same operation as a newer release has it.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[idem(operation = "pay", version = 2)]
pub(crate) struct PayNewer {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// Another operation with the same members.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[idem(operation = "refund", version = 1)]
pub(crate) struct Refund {
    pub(crate) account: String,
    pub(crate) cents: u64,
}

/// One whose members come from the path.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[idem(operation = "cancel", version = 1)]
pub(crate) struct Cancel {
    pub(crate) branch: String,
    pub(crate) order: u64,
}

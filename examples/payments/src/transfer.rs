//! A command that makes two charges: money from one account to another.

use idem_core::{CommandHash, DownstreamKey, IdempotentCommand};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::provider::Order;

/// Move money between two accounts.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "create_transfer", version = 1)]
pub struct CreateTransfer {
    /// Whose money.
    #[idem(verbatim)]
    pub from_account_id: String,
    /// Who gets it.
    #[idem(verbatim)]
    pub to_account_id: String,
    /// How much: a string or an integer.
    #[serde(deserialize_with = "idem_core::exact::decimal")]
    #[idem(decimal(scale = 2))]
    pub amount: Decimal,
    /// ISO 4217, in either case.
    #[idem(uppercase)]
    pub currency: String,
}

impl CreateTransfer {
    /// What is taken from one account.
    pub fn debit(&self, key: DownstreamKey, command: CommandHash) -> Order {
        self.order(&self.from_account_id, self.amount, key, command)
    }

    /// What the other one gets.
    pub fn credit(&self, key: DownstreamKey, command: CommandHash) -> Order {
        self.order(&self.to_account_id, -self.amount, key, command)
    }

    /// What the first one gets back where the other does not take it.
    pub fn refund(&self, key: DownstreamKey, command: CommandHash) -> Order {
        self.order(&self.from_account_id, -self.amount, key, command)
    }

    fn order(&self, account: &str, amount: Decimal, key: DownstreamKey, command: CommandHash) -> Order {
        Order { key, account: account.to_owned(), amount, currency: self.currency.clone(), command }
    }
}

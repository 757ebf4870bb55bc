//! The command: what a client asks for, and what makes two requests the same.

use idem_core::{CommandHash, DownstreamKey, IdempotentCommand};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::provider::Order;

/// Take a payment from an account.
#[derive(Debug, Clone, Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "create_payment", version = 1)]
pub struct CreatePayment {
    /// Whose money. An id is a token, not text: the provider compares its very bytes, so idem must too.
    #[idem(verbatim)]
    pub account_id: String,
    /// How much: a string or an integer. A JSON number with a fraction has lost cents before anybody sees it.
    #[serde(deserialize_with = "idem_core::exact::decimal")]
    #[idem(decimal(scale = 2))]
    pub amount: Decimal,
    /// ISO 4217, in either case.
    #[idem(uppercase)]
    pub currency: String,
    /// The merchant's own name for it, a token as well.
    #[idem(verbatim)]
    pub merchant_reference: String,
    /// Where the order was placed; absent, null and `web` are one.
    #[serde(default)]
    #[idem(default = "web")]
    pub channel: Option<String>,
    /// For the merchant's logs. It says nothing about the payment, so a retry may carry another.
    #[serde(default)]
    #[idem(exclude)]
    pub trace_id: Option<String>,
}

impl CreatePayment {
    /// What the types cannot say; checked before anything is claimed, so that a refusal uses up no key.
    ///
    /// # Errors
    /// The reason, for the client.
    pub fn validate(&self) -> Result<(), &'static str> {
        let currency = self.currency.len() == 3 && self.currency.bytes().all(|byte| byte.is_ascii_alphabetic());
        match () {
            () if self.account_id.is_empty() => Err("account_id is empty"),
            () if self.amount <= Decimal::ZERO => Err("the amount is not positive"),
            () if self.amount.normalize().scale() > 3 => Err("no currency has more than three decimals"),
            () if !currency => Err("a currency has three letters"),
            () => Ok(()),
        }
    }
    /// What the provider is asked for.
    pub fn order(&self, key: DownstreamKey, command: CommandHash) -> Order {
        let (account, currency) = (self.account_id.clone(), self.currency.clone());
        Order { key, account, amount: self.amount, currency, command }
    }
}

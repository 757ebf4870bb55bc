//! What the service tells others: that a payment was paid, in the transaction that says so in its own rows.

use std::sync::Arc;

use async_trait::async_trait;
use idem_sqlx::outbox::{self, AppendError, Event, Publish, PublishError};
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, Transaction};

use crate::ledger::Payment;
use crate::office::Office;

/// What the event `payment_paid` says, in its version 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaymentPaid {
    /// The payment's id.
    pub payment: String,
    /// Whose money.
    pub account: String,
    /// How much, with two decimals.
    pub amount: String,
    /// In what.
    pub currency: String,
}

/// Tells that the payment is paid, where it is. The handler and the worker may both come to it, or one of them twice: the
/// event's id is made of the payment's, so there is one.
///
/// # Errors
/// [`AppendError`].
pub async fn tell(tx: &mut Transaction<'_, Sqlite>, payment: &Payment) -> Result<(), AppendError> {
    if payment.state != "paid" {
        return Ok(());
    }
    let said = serde_json::json!(PaymentPaid {
        payment: payment.id.clone(),
        account: payment.account_id.clone(),
        amount: payment.amount.clone(),
        currency: payment.currency.clone(),
    });
    let event = Event {
        id: format!("payment_paid_{}", payment.id),
        topic: "payments".to_owned(),
        key: payment.id.clone(),
        kind: "payment_paid".to_owned(),
        version: 1,
        payload: said.to_string().into_bytes(),
    };
    outbox::append(tx, &event).await?;
    Ok(())
}

/// The message bus, in earnest a broker. A broker may deliver a message more than once; this one always does.
#[derive(Debug)]
pub struct Bus(pub Arc<Office>);

#[async_trait]
impl Publish for Bus {
    async fn publish(&self, event: &Event) -> Result<(), PublishError> {
        for _ in 0..DELIVERIES {
            self.0.hear(event).await?;
        }
        Ok(())
    }
}

const DELIVERIES: u32 = 3;

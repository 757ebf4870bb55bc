//! Asking the provider what became of a charge whose answer nobody saw, and what its answer means.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::{CallRecord, Reconciler, Record, Settled, Transient};
use sqlx::{Sqlite, Transaction};

use crate::api;
use crate::events;
use crate::ledger;
use crate::provider::{Charge, Provider};

type Tx = Transaction<'static, Sqlite>;

/// Settles a payment, for a client that may never come back: payment, ledger, event and record in one transaction.
#[derive(Debug)]
pub struct Payments(pub Arc<Provider>);

#[async_trait]
impl Reconciler<Tx> for Payments {
    async fn find(&self, record: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        find(&self.0, record, call).await
    }

    async fn settle(
        &self,
        tx: &mut Tx,
        record: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn Error + Send + Sync>> {
        let (Some(charge), Some(made)) = (call.outcome::<Charge>().transpose()?, &record.resource) else {
            return Ok(Settled::Resume);
        };
        let payment = ledger::settle(tx, &made.id, &charge).await?;
        events::tell(tx, &payment).await?;
        Ok(Settled::Reply(api::settled(&payment, &charge)?))
    }
}

/// Finds out about one charge of a transfer. What else is to be done for the transfer is the handler's to know: its next
/// attempt goes on from there.
#[derive(Debug)]
pub struct Transfers(pub Arc<Provider>);

#[async_trait]
impl Reconciler<Tx> for Transfers {
    async fn find(&self, record: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        find(&self.0, record, call).await
    }

    async fn settle(&self, _: &mut Tx, _: &Record, _: &CallRecord) -> Result<Settled, Box<dyn Error + Send + Sync>> {
        Ok(Settled::Resume)
    }
}

async fn find(provider: &Provider, record: &Record, call: &CallRecord) -> Result<Finding, Transient> {
    match provider.find(&call.key).await.map_err(Transient::new)? {
        None => Ok(Finding::NotApplied),
        // Under our key, and not ours: nobody knows then, and a person finds out.
        Some(made) if made.command != record.hash.to_string() => Ok(Finding::StillUnknown),
        Some(made) => Finding::applied(&Charge::from(made)).map_err(Transient::new),
    }
}

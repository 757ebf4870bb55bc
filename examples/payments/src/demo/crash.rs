//! The service dies after the provider has charged, and before it could write that down.

use std::time::Duration;

use super::Error;
use super::child::Child;
use super::client::payment;
use super::report::Scene;
use super::stage::Stage;
use crate::provider::{Fault, Trouble};
use crate::setup::Setup;

/// The client's retry takes over once the lease is over, and charges under the same key: the provider knows it.
pub(super) async fn client_comes_back(stage: &Stage) -> Result<Scene, Error> {
    let setup = Setup { lease: Duration::from_secs(1), ..Setup::default() };
    let (first, service) = die(stage, "crash", &setup).await?;
    let got = vec![first, service.client.settled("crash").await?];
    let what = "charged, then the service died; a retry after its restart";
    let scene = service.client.scene("crash", what, got, vec![DIED, "201"], 1).await?;
    service.close().await?;
    Ok(scene)
}

/// The worker asks the provider, and settles payment, ledger and record together.
pub(super) async fn nobody_comes_back(stage: &Stage) -> Result<Scene, Error> {
    let brisk = Duration::from_millis(200);
    let setup = Setup { lease: 2 * brisk, grace: brisk, look_every: brisk, backoff: brisk, ..Setup::default() };
    let (first, service) = die(stage, "abandoned", &setup).await?;
    let client = &service.client;
    let paid = client.paid("abandoned").await?;
    let booked = paid.booked.as_deref().unwrap_or("nothing");
    let mut got = vec![first, format!("payment {}, {booked} in the ledger", paid.state)];
    // Only now somebody asks for the record.
    got.push(client.pay("acme", "abandoned", payment("abandoned", "10.00")).await?);
    let what = "charged, then the service died; nobody retries, the worker asks";
    let expected = vec![DIED, "payment paid, 10.00 in the ledger", "201 replayed"];
    let scene = client.scene("abandoned", what, got, expected, 1).await?;
    service.close().await?;
    Ok(scene)
}

/// A payment during which the service dies, and the service started again on the same data.
async fn die(stage: &Stage, scene: &str, setup: &Setup) -> Result<(String, Child), Error> {
    let service = stage.child(scene, setup).await?;
    service.client.next_charge(Trouble::of(Fault::Crash)).await?;
    let first = match service.client.pay("acme", scene, payment(scene, "10.00")).await {
        Ok(answered) => answered,
        Err(_) => DIED.to_owned(),
    };
    service.died().await?;
    Ok((first, stage.child(scene, setup).await?))
}

const DIED: &str = "no answer";

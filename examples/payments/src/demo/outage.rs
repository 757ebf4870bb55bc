//! The provider fails, and dedupes: the charge is made again under the same key, and is the same charge.

use std::time::Duration;

use super::Error;
use super::client::{Client, FAILED, payment};
use super::report::Scene;
use super::stage::{Shop, Stage};
use crate::provider::{Fault, Trouble};
use crate::setup::Setup;

pub(super) async fn lost_answer(client: &Client) -> Result<Scene, Error> {
    let got = fail_once(client, "lost", Fault::LostAnswer).await?;
    client.scene("lost", "charged, but the provider's answer was lost", got, vec![FAILED, "201"], 1).await
}

pub(super) async fn time_out(stage: &Stage) -> Result<Scene, Error> {
    let setup = Setup { time_out: Duration::from_millis(500), ..Setup::default() };
    let shop = stage.shop("time-out", &setup).await?;
    let Shop { client, .. } = &shop;
    let got = fail_once(client, "time-out", Fault::TimeOut).await?;
    let scene = client.scene("time-out", "charged, and answered too late", got, vec![FAILED, "201"], 1).await?;
    shop.close().await;
    Ok(scene)
}

pub(super) async fn unavailable(client: &Client) -> Result<Scene, Error> {
    let got = fail_once(client, "unavailable", Fault::Unavailable).await?;
    client.scene("unavailable", "the provider said 503 first", got, vec![FAILED, "201"], 1).await
}

pub(super) async fn unreachable(client: &Client) -> Result<Scene, Error> {
    let got = fail_once(client, "away", Fault::Unreachable).await?;
    client.scene("away", "the provider could not be reached", got, vec![FAILED, "201"], 1).await
}

pub(super) async fn declined(client: &Client) -> Result<Scene, Error> {
    client.next_charge(Trouble::of(Fault::Declined)).await?;
    let got = client.pay_each("declined", [payment("declined", "10.00"), payment("declined", "10.00")]).await?;
    client.scene("declined", "the card was declined", got, vec!["402", "402 replayed"], 0).await
}

async fn fail_once(client: &Client, scene: &str, fault: Fault) -> Result<Vec<String>, Error> {
    client.next_charge(Trouble::of(fault)).await?;
    let first = client.pay("acme", scene, payment(scene, "10.00")).await?;
    Ok(vec![first, client.settled(scene).await?])
}

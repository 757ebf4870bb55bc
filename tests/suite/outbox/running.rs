//! The loop.

use std::time::Duration;

use idem_sqlx::outbox::{Relay, RelayOptions};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::broker::{Broker, Fault};
use super::{Place, patient};

fn start<P: Place>(relay: Relay<P::Store>) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel();
    (stop, tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await }))
}

/// Waits for what must come, however slow the machine is.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(super) async fn a_running_relay_publishes_what_comes<P: Place>() {
    let place = P::fresh().await;
    let broker = Broker::new().will("a2", [Fault::Away]);
    let options = RelayOptions {
        backoff: Duration::from_millis(1),
        retention: Duration::ZERO,
        clean_every: Duration::from_millis(5),
        ..patient()
    };
    let (stop, running) = start::<P>(place.relay(&broker).options(options));
    for id in ["a1", "a2", "a3"] {
        place.append(&[(id, "a")]).await;
        until(async || broker.got().last().is_some_and(|last| last == id)).await;
    }
    // It cleans up by itself.
    until(async || place.count("outbox").await == 0).await;
    drop(stop);
    running.await.unwrap();
    place.append(&[("a4", "a")]).await;
    assert_eq!(broker.got(), ["a1", "a2", "a3"]);
}

/// What it has is published and marked; what comes after it is left to others.
pub(super) async fn a_relay_that_is_stopped_ends_what_it_has<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("a2", "a")]).await;
    let broker = Broker::new().will("a1", [Fault::Hangs]);
    let (stop, running) = start::<P>(place.relay(&broker));
    broker.hangs().await;
    stop.send(()).unwrap();
    // It has heard of it once it is its only task left; a moment is enough to see it not end.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!running.is_finished());
    broker.goes_on();
    running.await.unwrap();
    assert_eq!(broker.got(), ["a1"]);
    assert_eq!(place.count("outbox WHERE state = 'published'").await, 1);
    assert_eq!(place.count("outbox WHERE state = 'waiting' AND owner_token IS NULL").await, 1);
}

pub(super) async fn a_slow_key_holds_up_no_other<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("slow", "a")]).await;
    let broker = Broker::new().will("slow", [Fault::Hangs]);
    let (stop, running) = start::<P>(place.relay(&broker));
    broker.hangs().await;
    for id in ["b1", "b2", "b3"] {
        place.append(&[(id, "b")]).await;
        until(async || broker.got().last().is_some_and(|last| last == id)).await;
    }
    broker.goes_on();
    drop(stop);
    running.await.unwrap();
    assert_eq!(broker.got(), ["b1", "b2", "b3", "slow"]);
}

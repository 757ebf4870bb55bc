//! What need not be known any more.

use std::collections::BTreeSet;
use std::time::Duration;

use idem_sqlx::inbox::{self, Consumer, Seen};
use idem_sqlx::outbox::{self, Appended, DeadLetters, RelayOptions};

use super::broker::{Broker, Fault};
use super::{Place, event, patient};

pub(super) async fn only_what_is_out_for_long_enough_goes<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("out", "a"), ("skipped", "b"), ("dead", "c"), ("behind", "c"), ("failed", "d")]).await;
    let broker = Broker::new().will("failed", [Fault::Away]);
    let broker = broker.will("skipped", [Fault::Refuses]).will("dead", [Fault::Refuses]);
    place.relay(&broker).relay_once(100).await.unwrap();
    DeadLetters::of(place.store().clone()).skip("skipped", "ada", "because").await.unwrap();
    // Kept for an hour: nothing goes. Not kept: what is out goes, and in batches.
    let relay = |retention| place.relay(&broker).options(RelayOptions { retention, ..patient() });
    assert_eq!(relay(Duration::from_secs(60 * 60)).clean_once(100).await.unwrap(), 0);
    tokio::time::sleep(Duration::from_millis(5)).await;
    while relay(Duration::ZERO).clean_once(1).await.unwrap() > 0 {}
    let left = format!("SELECT event_id FROM {}idempotency_outbox ORDER BY event_no", P::SCHEMA);
    assert_eq!(place.texts(left).await, ["dead", "behind", "failed"]);
    // A line whose lock went is as good as a new one.
    place.append(&[("next", "a")]).await;
    place.hasten().await;
    place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(BTreeSet::from_iter(broker.got()), BTreeSet::from(["out", "failed", "next"].map(str::to_owned)));
}

/// After that the event of the same run is a new one, which its consumers know again by its id.
pub(super) async fn an_id_is_known_for_as_long_as_its_event_is_kept<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let relay = place.relay(&Broker::new()).options(RelayOptions { retention: Duration::ZERO, ..patient() });
    relay.relay_once(100).await.unwrap();
    for appended in [Appended::Before, Appended::New] {
        let mut tx = place.begin().await;
        assert_eq!(outbox::append(&mut tx, &event("e", "pay_1")).await.unwrap(), appended);
        drop(tx);
        tokio::time::sleep(Duration::from_millis(5)).await;
        while relay.clean_once(100).await.unwrap() > 0 {}
    }
}

pub(super) async fn marks_go_after_their_time<P: Place>() {
    let place = P::fresh().await;
    let deliver = async |consumer: &Consumer, id| {
        let tx = place.begin().await;
        inbox::once(tx, consumer, id, |tx| async move { Ok((tx, ())) }).await.unwrap()
    };
    let short = Consumer::new("short").unwrap().keep(Duration::ZERO);
    let long = Consumer::new("long").unwrap();
    for id in ["m1", "m2", "m3"] {
        assert_eq!((deliver(&short, id).await, deliver(&long, id).await), (Seen::First(()), Seen::First(())));
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(inbox::clean_once(place.store(), 2).await.unwrap(), 2);
    assert_eq!(inbox::clean_once(place.store(), 2).await.unwrap(), 1);
    assert_eq!(inbox::clean_once(place.store(), 2).await.unwrap(), 0);
    assert_eq!((deliver(&short, "m1").await, deliver(&long, "m1").await), (Seen::First(()), Seen::Again));
}

//! At least once, by one relay at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use idem_sqlx::inbox::{self, Consumer, Marked};
use idem_sqlx::outbox::{DeadLetters, Event, Relay, RelayOptions, Relayed, backlog};

use super::broker::{Broker, Fault};
use super::{Place, event, patient};

const NOTHING: Relayed = Relayed { published: 0, failed: 0, dead: 0, lost: 0 };

pub(super) async fn each_event_goes_out_once_with_all_that_it_says<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("a2", "a")]).await;
    let counted = backlog(place.store()).await.unwrap();
    assert_eq!((counted.waiting, counted.dead, counted.oldest.is_some()), (3, 0, true));
    let broker = Broker::new();
    let relay = place.relay(&broker);
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 3, ..NOTHING });
    assert_eq!(relay.relay_once(100).await.unwrap(), NOTHING);
    let of = |key: &str| -> Vec<Event> { broker.events().into_iter().filter(|event| event.key == key).collect() };
    assert_eq!(of("a"), [event("a1", "a"), event("a2", "a")]);
    assert_eq!(of("b"), [event("b1", "b")]);
    let counted = backlog(place.store()).await.unwrap();
    assert_eq!((counted.waiting, counted.dead, counted.oldest), (0, 0, None));
}

pub(super) async fn no_more_are_taken_than_were_asked_for<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")]).await;
    let broker = Broker::new();
    for (limit, published) in [(0, 0), (2, 2), (1, 1), (100, 2)] {
        let relayed = place.relay(&broker).relay_once(limit).await.unwrap();
        assert_eq!(relayed, Relayed { published, ..NOTHING }, "limit {limit}");
    }
    assert_eq!(broker.got().len(), 5);
}

/// The message is out twice; its consumer acts once.
pub(super) async fn a_relay_that_dies_between_publishing_and_marking_leaves_one_effect<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("paid", "pay_1"), ("refunded", "pay_1")]).await;
    let broker = Broker::new().will("paid", [Fault::TakesAndHangs]);
    let relay = place.relay(&broker);
    let dying = tokio::spawn(async move { relay.relay_once(100).await });
    broker.hangs().await;
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    // For as long as its lease runs nobody else has the event, nor what comes after it.
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), NOTHING);
    place.hasten().await;
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 2, ..NOTHING });
    assert_eq!(broker.got(), ["paid", "paid", "refunded"]);

    let ledger = Consumer::new("ledger").unwrap();
    for message in broker.events() {
        let id = message.id.clone();
        let enter = |mut tx: Marked<'static, P::Db>| async move {
            P::insert(&mut tx, &message.id).await?;
            Ok((tx, ()))
        };
        inbox::once(place.begin().await, &ledger, &id, enter).await.unwrap();
    }
    assert_eq!(place.rows().await, ["paid", "refunded"]);
}

/// Another relay has published it meanwhile. What the slow one makes of it is nobody's business any more: it neither marks
/// it again, nor takes the next one, nor has it tried again.
pub(super) async fn a_relay_whose_lease_is_over_marks_nothing<P: Place>() {
    for late in [Fault::TakesAndHangs, Fault::Hangs] {
        let place = P::fresh().await;
        place.append(&[("e1", "pay_1")]).await;
        let broker = Broker::new().will("e1", [late]);
        let relay = place.relay(&broker);
        let slow = tokio::spawn(async move { relay.relay_once(100).await.unwrap() });
        broker.hangs().await;
        place.hasten().await;
        assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
        place.append(&[("e2", "pay_1")]).await;
        broker.goes_on();
        assert_eq!(slow.await.unwrap(), Relayed { lost: 1, ..NOTHING });
        assert_eq!(broker.got(), ["e1", "e1"]);
        assert_eq!(place.count("outbox WHERE state = 'waiting'").await, 1);
    }
    // The same where the other one has it still.
    let place = P::fresh().await;
    place.append(&[("e1", "pay_1")]).await;
    let (slow, other) = (Broker::new().will("e1", [Fault::Hangs]), Broker::new().will("e1", [Fault::Hangs]));
    let relays = [&slow, &other].map(|broker| place.relay(broker));
    let [first, second] = relays.map(|relay| async move { relay.relay_once(100).await.unwrap() });
    let first = tokio::spawn(first);
    slow.hangs().await;
    place.hasten().await;
    let second = tokio::spawn(second);
    other.hangs().await;
    slow.goes_on();
    assert_eq!(first.await.unwrap(), Relayed { lost: 1, ..NOTHING });
    assert_eq!(place.count("outbox WHERE state = 'published'").await, 0);
    other.goes_on();
    assert_eq!(second.await.unwrap(), Relayed { published: 1, ..NOTHING });
}

pub(super) async fn a_failing_event_holds_up_its_key_and_no_other<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("a2", "a"), ("b1", "b")]).await;
    let broker = Broker::new().will("a1", [Fault::Away]);
    let relay = place.relay(&broker);
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, failed: 1, ..NOTHING });
    assert_eq!(relay.relay_once(100).await.unwrap(), NOTHING, "its pause is not over");
    place.append(&[("a3", "a"), ("b2", "b")]).await;
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
    assert_eq!(broker.got(), ["b1", "b2"]);
    place.hasten().await;
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 3, ..NOTHING });
    assert_eq!(broker.got(), ["b1", "b2", "a1", "a2", "a3"]);
}

pub(super) async fn a_publisher_that_does_not_answer_is_given_up<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let broker = Broker::new().will("e", [Fault::Hangs]);
    // Long enough to store what became of it, on any machine.
    let options = RelayOptions { lease: Duration::from_secs(4), attempts: 1, ..patient() };
    let relay = Relay::new(place.store().clone(), broker.clone()).options(options);
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { dead: 1, ..NOTHING });
    let dead = DeadLetters::of(place.store().clone()).list(10).await.unwrap();
    assert!(dead[0].last_error.contains("did not answer"), "{dead:?}");
}

pub(super) async fn a_publisher_that_panics_takes_nobody_with_it<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("b2", "b")]).await;
    let broker = Broker::new().will("a1", [Fault::Panics]);
    let relay = place.relay(&broker);
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 2, failed: 1, ..NOTHING });
    place.hasten().await;
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
}

/// Their leases are long: each event goes out once, and each key's in its order.
pub(super) async fn relays_share_what_there_is<P: Place>() {
    let place = P::fresh().await;
    let ids: Vec<_> = (0..60).map(|number| (format!("e{number:02}"), format!("key-{}", number % 7))).collect();
    place.append(&ids.iter().map(|(id, key)| (id.as_str(), key.as_str())).collect::<Vec<_>>()).await;
    let brokers = [(); 4].map(|()| Broker::new());
    let relays = brokers.each_ref().map(|broker| place.relay(broker));
    let relays = relays.map(|relay| tokio::spawn(async move { relay.relay_once(100).await.unwrap() }));
    let relayed = join_all(relays).await;
    assert!(relayed.iter().all(|relayed| relayed.as_ref().unwrap().lost == 0), "{relayed:?}");
    // One may have come when another had a key; its later events are the next round's.
    let rest = Broker::new();
    place.relay(&rest).relay_once(100).await.unwrap();
    let got: Vec<_> = brokers.iter().chain([&rest]).flat_map(Broker::got).collect();
    assert_eq!(got.len(), 60, "{got:?}");
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 60, "{got:?}");
}

/// Its lease is over before anybody could begin: it is as before, with what its last try came to, and no attempt older.
pub(super) async fn an_event_that_nobody_had_time_for_is_given_back<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let broker = Broker::new().will("e", [Fault::Away]);
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { failed: 1, ..NOTHING });
    place.hasten().await;
    let relay = place.relay(&broker).options(RelayOptions { lease: Duration::ZERO, ..patient() });
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { lost: 1, ..NOTHING });
    let as_before =
        "outbox WHERE state = 'waiting' AND attempts = 1 AND owner_token IS NULL AND last_error LIKE '%connection'";
    assert_eq!((place.count(as_before).await, broker.got().len()), (1, 0));
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
}

/// One place to work at, and a key that is never done: the other one comes between.
pub(super) async fn a_key_that_never_runs_dry_does_not_keep_its_place<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("a2", "a"), ("a3", "a"), ("a4", "a"), ("a5", "a")]).await;
    place.append(&[("b1", "b"), ("b2", "b")]).await;
    // Whoever has had a turn is due after who has not.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let broker = Broker::new();
    let options = RelayOptions { lines: 1, quantum: 2, ..patient() };
    let relay = place.relay(&broker).options(options.clone());
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 7, ..NOTHING });
    assert_eq!(broker.got(), ["a1", "a2", "b1", "b2", "a3", "a4", "a5"]);
    // None in a row is one. Where there is place for others, and nobody else waits, it has its next turn at once.
    place.append(&[("a6", "a"), ("a7", "a")]).await;
    let relay = place.relay(&broker).options(RelayOptions { lines: 16, quantum: 0, ..options });
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 2, ..NOTHING });
}

/// "For ever" is what somebody writes who wants no limit.
pub(super) async fn spans_without_end_are_as_good_as_long_ones<P: Place>() {
    let place = P::fresh().await;
    let broker = Broker::new().will("e1", [Fault::Away]);
    let ever = Duration::MAX;
    let options = RelayOptions {
        lease: ever,
        poll: ever,
        backoff: ever,
        backoff_cap: ever,
        retention: ever,
        clean_every: ever,
        ..patient()
    };
    let relay = place.relay(&broker).options(options);
    place.append(&[("e1", "a"), ("e2", "b")]).await;
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, failed: 1, ..NOTHING });
    assert_eq!(relay.relay_once(100).await.unwrap(), NOTHING, "its pause is not over");
    assert_eq!(relay.clean_once(100).await.unwrap(), 0);
    place.hasten().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    while broker.got().len() < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(stop);
    running.await.unwrap();
    let consumer = Consumer::new("ledger").unwrap().keep(ever);
    for seen in [inbox::Seen::First(()), inbox::Seen::Again] {
        let told = inbox::once(place.begin().await, &consumer, "m1", |tx| async move { Ok((tx, ())) }).await;
        assert_eq!(told.unwrap(), seen);
        assert_eq!(inbox::clean_once(place.store(), 100).await.unwrap(), 0);
    }
}

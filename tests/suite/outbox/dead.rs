//! Events that a person has to look at.

use idem_sqlx::outbox::{DeadLetters, Relay, RelayOptions, Relayed, backlog};

use super::broker::{Broker, Fault};
use super::{Place, patient};

const NOTHING: Relayed = Relayed { published: 0, failed: 0, dead: 0, lost: 0 };

/// `a1` is refused, and holds up `a2`.
async fn refused<P: Place>() -> (P, Broker, DeadLetters<P::Store>) {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("a2", "a")]).await;
    let broker = Broker::new().will("a1", [Fault::Refuses]);
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 1, dead: 1, ..NOTHING });
    let dead = DeadLetters::of(place.store().clone());
    (place, broker, dead)
}

async fn audited<P: Place>(place: &P) -> Vec<String> {
    let entry = "action || ' by ' || actor || ': ' || reason";
    place.texts(format!("SELECT {entry} FROM {}idempotency_audit ORDER BY audit_id", P::SCHEMA)).await
}

pub(super) async fn a_refused_event_holds_up_its_key<P: Place>() {
    let (place, broker, dead) = refused::<P>().await;
    place.hasten().await;
    place.append(&[("a3", "a"), ("b2", "b")]).await;
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
    assert_eq!(broker.got(), ["b1", "b2"]);
    let letters = dead.list(10).await.unwrap();
    assert_eq!((letters.len(), letters[0].id.as_str(), letters[0].attempts), (1, "a1", 1));
    assert_eq!(letters[0].last_error, "the event was refused: the topic does not take it");
    let counted = backlog(place.store()).await.unwrap();
    assert_eq!((counted.waiting, counted.dead), (2, 1));
}

pub(super) async fn a_dead_letter_that_is_put_back_goes_out_before_the_later_ones<P: Place>() {
    let (place, broker, dead) = refused::<P>().await;
    dead.redrive("a1", "ada", "the limit was raised").await.unwrap();
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 2, ..NOTHING });
    assert_eq!(broker.got(), ["b1", "a1", "a2"]);
    assert_eq!(audited(&place).await, ["redrive event a1 by ada: the limit was raised"]);
}

pub(super) async fn a_dead_letter_that_is_skipped_lets_the_later_ones_go<P: Place>() {
    let (place, broker, dead) = refused::<P>().await;
    dead.skip("a1", "ada", "its consumers were told").await.unwrap();
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
    assert_eq!(broker.got(), ["b1", "a2"]);
    assert_eq!(audited(&place).await, ["skip event a1 by ada: its consumers were told"]);
    assert_eq!(dead.redrive("a1", "ada", "after all").await.unwrap_err().code(), "EVENT_NOT_DEAD");
}

pub(super) async fn a_topic_is_put_back_at_once<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("c1", "c")]).await;
    let broker = Broker::new().will("a1", [Fault::Refuses]).will("b1", [Fault::Refuses]);
    place.relay(&broker).relay_once(100).await.unwrap();
    let dead = DeadLetters::of(place.store().clone());
    assert_eq!(dead.redrive_topic("refunds", "ada", "the broker is back").await.unwrap(), 0);
    assert_eq!(dead.redrive_topic("payments", "ada", "the broker is back").await.unwrap(), 2);
    assert_eq!(place.relay(&broker).relay_once(100).await.unwrap(), Relayed { published: 2, ..NOTHING });
    assert_eq!(audited(&place).await.len(), 2);
}

/// More than are put back in one write.
pub(super) async fn a_topic_of_a_thousand_is_put_back<P: Place>() {
    let place = P::fresh().await;
    let ids: Vec<_> = (0..1100).map(|number| format!("e{number:04}")).collect();
    place.append(&ids.iter().map(|id| (id.as_str(), id.as_str())).collect::<Vec<_>>()).await;
    place.run(format!("UPDATE {}idempotency_outbox SET state = 'dead', attempts = 3", P::SCHEMA)).await;
    let dead = DeadLetters::of(place.store().clone());
    assert_eq!(dead.redrive_topic("payments", "ada", "the broker is back").await.unwrap(), 1100);
    assert_eq!(place.count("outbox WHERE state = 'waiting' AND attempts = 0").await, 1100);
    assert_eq!(audited(&place).await.len(), 1100);
    assert_eq!(dead.redrive_topic("payments", "ada", "once more").await.unwrap(), 0);
}

/// Another program wrote it, or a newer release. It stops nobody but its own line, and a person can see it and decide.
pub(super) async fn a_row_that_does_not_read_is_a_dead_letter<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("b2", "b"), ("b3", "b"), ("c1", "c")]).await;
    let spoil = |id| {
        let table = format!("{}idempotency_outbox", P::SCHEMA);
        place.run(format!("UPDATE {table} SET schema_version = 5000000000 WHERE event_id = '{id}'"))
    };
    // One that is first in its line, and one that comes after another.
    spoil("a1").await;
    spoil("b2").await;
    let broker = Broker::new();
    let relay = place.relay(&broker);
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 2, dead: 2, ..NOTHING });
    assert_eq!(relay.relay_once(100).await.unwrap(), NOTHING);
    let dead = DeadLetters::of(place.store().clone());
    let letters = dead.list(10).await.unwrap();
    let told: Vec<_> = letters.iter().map(|letter| (letter.id.as_str(), letter.event.is_none())).collect();
    assert_eq!(told, [("a1", true), ("b2", true)]);
    assert!(letters[0].last_error.ends_with("its schema_version"), "{letters:?}");
    assert_eq!(place.count("outbox WHERE state = 'dead' AND owner_token IS NULL").await, 2);
    // Put back as it is, it dies again; skipped, it holds up nobody.
    dead.redrive("a1", "ada", "because").await.unwrap();
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { dead: 1, ..NOTHING });
    dead.skip("b2", "ada", "its consumers were told").await.unwrap();
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
    let mut got = broker.got();
    got.sort();
    assert_eq!(got, ["b1", "b3", "c1"]);
}

pub(super) async fn an_event_that_fails_too_often_is_dead<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let broker = Broker::new().will("e", [Fault::Away; 4]);
    let relay = place.relay(&broker).options(RelayOptions { attempts: 2, ..patient() });
    let dead = DeadLetters::of(place.store().clone());
    for _ in 0..2 {
        assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { failed: 1, ..NOTHING });
        place.hasten().await;
        assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { dead: 1, ..NOTHING });
        assert_eq!(dead.list(10).await.unwrap()[0].last_error, "the event was not published: no connection");
        // With all its attempts again.
        dead.redrive("e", "ada", "the broker is back").await.unwrap();
    }
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { published: 1, ..NOTHING });
}

/// It takes them with it before they can say so, again and again.
pub(super) async fn an_event_that_no_relay_comes_back_from_is_dead<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let broker = Broker::new().will("e", [Fault::Hangs; 10]);
    for _ in 0..3 {
        let relay = place.relay(&broker).options(RelayOptions { attempts: 3, ..patient() });
        let dying = tokio::spawn(async move { relay.relay_once(100).await });
        broker.hangs().await;
        dying.abort();
        let _aborted = dying.await;
        place.hasten().await;
    }
    let relay: Relay<P::Store> = place.relay(&broker).options(RelayOptions { attempts: 3, ..patient() });
    assert_eq!(relay.relay_once(100).await.unwrap(), Relayed { dead: 1, ..NOTHING });
    assert_eq!(broker.got(), Vec::<String>::new());
    let dead = DeadLetters::of(place.store().clone()).list(10).await.unwrap();
    assert_eq!(dead[0].last_error, "no relay came back from it");
}

pub(super) async fn only_a_dead_letter_is_a_persons_to_decide<P: Place>() {
    let (place, _, dead) = refused::<P>().await;
    for id in ["a2", "b1", "nobody"] {
        assert_eq!(dead.redrive(id, "ada", "because").await.unwrap_err().code(), "EVENT_NOT_DEAD", "{id}");
        assert_eq!(dead.skip(id, "ada", "because").await.unwrap_err().code(), "EVENT_NOT_DEAD", "{id}");
    }
    for (actor, reason) in [("", "because"), ("ada", " ")] {
        assert_eq!(dead.redrive("a1", actor, reason).await.unwrap_err().code(), "EVENT_UNEXPLAINED");
        assert_eq!(dead.skip("a1", actor, reason).await.unwrap_err().code(), "EVENT_UNEXPLAINED");
        assert_eq!(dead.redrive_topic("payments", actor, reason).await.unwrap_err().code(), "EVENT_UNEXPLAINED");
    }
    assert_eq!((audited(&place).await, dead.list(10).await.unwrap().len()), (Vec::new(), 1));
}

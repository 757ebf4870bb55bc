//! Events and rows: together, or neither.

use std::time::Duration;

use idem_sqlx::outbox::{self, AppendError, Appended, Event, Relayed};

use super::broker::Broker;
use super::{Place, event};

pub(super) async fn an_event_is_committed_with_its_rows_or_not_at_all<P: Place>() {
    let place = P::fresh().await;
    for (id, commits) in [("taken-back", false), ("committed", true)] {
        let mut tx = place.begin().await;
        P::insert(&mut tx, id).await.unwrap();
        outbox::append(&mut tx, &event(id, "pay_1")).await.unwrap();
        if commits {
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
    }
    let broker = Broker::new();
    let relayed = place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(relayed, Relayed { published: 1, ..Relayed::default() });
    assert_eq!((broker.got(), place.rows().await), (vec!["committed".to_owned()], vec!["committed".to_owned()]));
}

/// A run that comes again may say another time of day; what was committed first stands.
pub(super) async fn an_event_appended_again_is_there_once<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    let broker = Broker::new();
    for out in [false, true] {
        let mut tx = place.begin().await;
        let again = Event { version: 2, payload: b"later".to_vec(), ..event("e", "pay_1") };
        assert_eq!(outbox::append(&mut tx, &again).await.unwrap(), Appended::Before, "out: {out}");
        tx.commit().await.unwrap();
        place.relay(&broker).relay_once(100).await.unwrap();
    }
    assert_eq!(broker.events(), [event("e", "pay_1")]);
}

/// It would be lost without a word.
pub(super) async fn an_id_that_belongs_to_another_event_is_refused<P: Place>() {
    let place = P::fresh().await;
    place.append(&[("e", "pay_1")]).await;
    for other in [
        event("e", "pay_2"),
        Event { topic: "refunds".into(), ..event("e", "pay_1") },
        Event { kind: "payment_refunded".into(), ..event("e", "pay_1") },
    ] {
        let mut tx = place.begin().await;
        let refused = outbox::append(&mut tx, &other).await.unwrap_err();
        assert_eq!(refused.code(), "EVENT_ID_OF_ANOTHER", "{refused}");
        // The transaction is as good as before.
        P::insert(&mut tx, "row").await.unwrap();
    }
}

pub(super) async fn what_no_table_would_keep_is_refused<P: Place>() {
    let place = P::fresh().await;
    let mut tx = place.begin().await;
    for wrong in [
        event("", "pay_1"),
        event("a\0b", "pay_1"),
        event("e", ""),
        event("e", &"k".repeat(256)),
        Event { topic: String::new(), ..event("e", "k") },
        Event { kind: "a\nb".into(), ..event("e", "k") },
    ] {
        let refused = outbox::append(&mut tx, &wrong).await.unwrap_err();
        assert!(matches!(refused, AppendError::Invalid(_)), "{refused}");
    }
    let longest =
        Event { payload: vec![0, 255, b'{'], version: u32::MAX, ..event(&"i".repeat(255), &"ä".repeat(127)) };
    outbox::append(&mut tx, &longest).await.unwrap();
    tx.commit().await.unwrap();
    let broker = Broker::new();
    place.relay(&broker).relay_once(1).await.unwrap();
    assert_eq!(broker.events(), [longest]);
}

/// Two transactions may be open at once, where a database lets them. Whoever appended to a key first is first, however
/// late his commit is: nobody sees the second event before it. Be it the key's first event, or one of many.
pub(super) async fn transactions_that_append_to_one_key_commit_in_its_order<P: Place>() {
    let place = P::fresh().await;
    let broker = Broker::new();
    let mut published = Vec::new();
    for [first_id, second_id] in [["e1", "e2"], ["e3", "e4"]] {
        let mut first = place.begin().await;
        outbox::append(&mut first, &event(first_id, "pay_1")).await.unwrap();
        let second = async {
            let mut tx = place.begin().await;
            outbox::append(&mut tx, &event(second_id, "pay_1")).await.unwrap();
            tx.commit().await.unwrap();
        };
        let mut second = Box::pin(second);
        // It waits, for as long as the first one is open.
        let waits = tokio::time::timeout(Duration::from_millis(200), &mut second).await;
        place.relay(&broker).relay_once(100).await.unwrap();
        assert_eq!((waits.is_err(), broker.got()), (true, published.clone()));
        first.commit().await.unwrap();
        second.await;
        place.relay(&broker).relay_once(100).await.unwrap();
        published.extend([first_id, second_id].map(str::to_owned));
        assert_eq!(broker.got(), published);
    }
}

//! Messages that are delivered again, and have one effect.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use idem_sqlx::inbox::{self, Consumer, Marked, OnceError, Seen};

use super::Place;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn ledger() -> Consumer {
    Consumer::new("ledger").unwrap()
}

/// Enters `row`, as a consumer would.
async fn enter<P: Place>(place: &P, consumer: &Consumer, id: &str, row: &str) -> Result<Seen<()>, OnceError> {
    let work = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, row).await?;
        Ok((tx, ()))
    };
    inbox::once(place.begin().await, consumer, id, work).await
}

/// A mark that outlived the failure would lose the message.
pub(super) async fn a_message_whose_first_delivery_failed_is_acted_on_by_the_second<P: Place>() {
    let place = P::fresh().await;
    let failing = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, "half").await?;
        Err::<(_, ()), Error>("the ledger is closed".into())
    };
    let failed = inbox::once(place.begin().await, &ledger(), "m1", failing).await.unwrap_err();
    assert_eq!((failed.code(), place.count("inbox").await), ("INBOX_WORK_FAILED", 0));
    assert_eq!(enter(&place, &ledger(), "m1", "entry").await.unwrap(), Seen::First(()));
    assert_eq!((place.rows().await, place.count("inbox").await), (vec!["entry".to_owned()], 1));
}

pub(super) async fn a_message_delivered_three_times_has_one_effect_for_each_consumer<P: Place>() {
    let place = P::fresh().await;
    let mail = Consumer::new("mail").unwrap();
    for delivery in 0..3 {
        let seen = if delivery == 0 { Seen::First(()) } else { Seen::Again };
        assert_eq!(enter(&place, &ledger(), "m1", &format!("entry {delivery}")).await.unwrap(), seen);
        assert_eq!(enter(&place, &mail, "m1", &format!("mail {delivery}")).await.unwrap(), seen);
    }
    assert_eq!(place.rows().await, ["entry 0", "mail 0"]);
}

pub(super) async fn two_deliveries_at_once_have_one_effect<P: Place>() {
    let place = P::fresh().await;
    let consumer = ledger();
    let deliveries = (0..8).map(|delivery| {
        let (place, consumer) = (&place, &consumer);
        async move { enter(place, consumer, "m1", &format!("entry {delivery}")).await.unwrap() }
    });
    let seen = join_all(deliveries).await;
    assert_eq!(seen.iter().filter(|seen| **seen == Seen::First(())).count(), 1, "{seen:?}");
    assert_eq!(place.rows().await.len(), 1);
}

/// The id tells them apart; what they say does not.
pub(super) async fn two_honest_events_that_say_the_same_are_two<P: Place>() {
    let place = P::fresh().await;
    for id in ["m1", "m2", "M2", "m2 "] {
        assert_eq!(enter(&place, &ledger(), id, &format!("ten euros, {id}")).await.unwrap(), Seen::First(()));
    }
    assert_eq!(place.rows().await.len(), 4);
    for wrong in ["", "a\0", &"x".repeat(256)] {
        assert_eq!(enter(&place, &ledger(), wrong, "none").await.unwrap_err().code(), "EVENT_INVALID");
    }
    assert!(Consumer::new("").is_err());
}

/// After a failed statement PostgreSQL takes a COMMIT for a ROLLBACK, and sqlx does not say so: such a delivery must not be
/// told as done. Whatever it was told as, the message has its effect in the end, and only once.
pub(super) async fn an_error_that_the_work_swallows_is_no_lost_message<P: Place>() {
    let place = P::fresh().await;
    let swallowing = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, "entry").await?;
        P::insert(&mut tx, "entry").await.expect_err("it is there already");
        Ok((tx, ()))
    };
    let first = inbox::once(place.begin().await, &ledger(), "m1", swallowing).await;
    let is_done = first.is_ok();
    assert_eq!(
        (place.rows().await.len(), place.count("inbox").await),
        if is_done { (1, 1) } else { (0, 0) },
        "{first:?}"
    );
    let second = enter(&place, &ledger(), "m1", "entry").await.unwrap();
    assert_eq!((second == Seen::Again, place.rows().await), (is_done, vec!["entry".to_owned()]));
}

pub(super) async fn work_that_panics_leaves_no_mark<P: Place>() {
    let place = P::fresh().await;
    let panicking = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, "half").await?;
        if place_is_panicking() {
            panic!("on purpose");
        }
        Ok((tx, ()))
    };
    let ledger = ledger();
    let delivery = inbox::once(place.begin().await, &ledger, "m1", panicking);
    assert!(AssertUnwindSafe(delivery).catch_unwind().await.is_err());
    assert_eq!(enter(&place, &ledger, "m1", "entry").await.unwrap(), Seen::First(()));
    assert_eq!(place.rows().await, ["entry"]);
}

/// Hides from the compiler that the rest is not reached.
fn place_is_panicking() -> bool {
    std::hint::black_box(true)
}

/// Whether it happened is found out by the next delivery.
pub(super) async fn a_commit_that_failed_leaves_no_mark<P: Place>() {
    let place = P::fresh().await;
    let doomed = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, "half").await?;
        P::doom(&mut tx).await;
        Ok((tx, ()))
    };
    let failed = inbox::once(place.begin().await, &ledger(), "m1", doomed).await.unwrap_err();
    assert_eq!(failed.code(), "INBOX_COMMIT_UNKNOWN", "{failed}");
    assert_eq!(enter(&place, &ledger(), "m1", "entry").await.unwrap(), Seen::First(()));
    assert_eq!(enter(&place, &ledger(), "m1", "again").await.unwrap(), Seen::Again);
    assert_eq!(place.rows().await, ["entry"]);
}

pub(super) async fn what_was_written_before_a_second_delivery_is_taken_back<P: Place>() {
    let place = P::fresh().await;
    for (row, seen) in [("first", Seen::First(())), ("second", Seen::Again), ("third", Seen::Again)] {
        let mut tx = place.begin().await;
        P::insert(&mut tx, row).await.unwrap();
        let told = inbox::once(tx, &ledger(), "m1", |tx| async move { Ok((tx, ())) }).await.unwrap();
        assert_eq!(told, seen);
    }
    assert_eq!(place.rows().await, ["first"]);
}

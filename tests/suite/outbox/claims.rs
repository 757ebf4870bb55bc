//! Events and messages of commands that run more than once.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use idem_core::consumer::Delivery;
use idem_core::store::{Evidence, Joins};
use idem_core::{
    CallClass, CallError, CallState, Claim, Engine, Failure, Fate, IdempotencyKey, IdempotentCommand, Outcome, Reply,
    Rules, Tenant,
};
use idem_sqlx::outbox::{self, Appended, Event};
use tokio::sync::Notify;

use super::broker::Broker;
use super::{Place, Tx, event};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

fn engine<P: Place>(place: &P, rules: Rules) -> Engine {
    let builder = Engine::builder(place.store().clone()).rules(rules).namespace("shop");
    builder.call::<Pay>("mail", CallClass::Neither).build().unwrap()
}

/// A retry comes at once, and a lease is soon over, which no heartbeat renews.
fn hasty() -> Rules {
    Rules {
        backoff: Duration::from_millis(1),
        lease: Duration::from_millis(30),
        max_run: Duration::from_nanos(1),
        ..Rules::default()
    }
}

fn paid(claim: &Claim) -> Event {
    event(&claim.derived_id("payment_paid"), "pay_1")
}

/// The first run commits the event with rows of its own, and fails after that.
pub(super) async fn a_handler_that_runs_again_appends_its_event_once<P: Place>()
where
    Tx<P>: Joins<P::Store>,
{
    let place = &P::fresh().await;
    let rules = Rules { backoff: Duration::from_millis(1), ..Rules::default() };
    let engine = engine(place, rules);
    let appended = &Mutex::new(Vec::new());
    let work = |claim: Claim| async move {
        let first = claim.attempt() == 1;
        let mut tx = place.begin().await;
        let told = outbox::append(&mut tx, &paid(&claim)).await.unwrap();
        appended.lock().unwrap().push(told);
        if first {
            tx.commit().await?;
            return Err(Failure::retryable("the mail server is away"));
        }
        Ok(Reply::from(claim.commit::<P::Store, _>(tx, Reply::status(201)).await?))
    };
    loop {
        let ran = engine.run(&tenant(), &key(), &Pay { cents: 1 }, work).await;
        match Delivery::of(&ran) {
            Delivery::Ack => break,
            Delivery::Later(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Delivery::DeadLetter(reason) => panic!("{reason:?}"),
        }
    }
    assert_eq!(*appended.lock().unwrap(), [Appended::New, Appended::Before]);
    let broker = Broker::new();
    place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(broker.got().len(), 1);
    // A transaction that the record did not get into has no event either.
    let lost = |claim: Claim| async move {
        let mut tx = place.begin().await;
        outbox::append(&mut tx, &paid(&claim)).await.unwrap();
        // An answer that is not final: the commit is refused.
        Ok(Reply::from(claim.commit::<P::Store, _>(tx, Reply::status(503)).await?))
    };
    let ran = engine.run(&tenant(), &"order-2".parse().unwrap(), &Pay { cents: 1 }, lost).await;
    assert!(matches!(ran.unwrap(), Outcome::Failed { .. }));
    assert_eq!(place.count("outbox").await, 1);
}

/// An id that was new for each attempt would have its receivers act four times: first attempt, retry, take-over, restart.
pub(super) async fn an_event_has_one_id_in_every_attempt<P: Place>() {
    let place = P::fresh().await;
    let (ids, others) = (&Mutex::new(Vec::new()), &Mutex::new(BTreeSet::new()));
    let note = |claim: &Claim| {
        ids.lock().unwrap().push(claim.derived_id("payment_paid"));
        others.lock().unwrap().insert(claim.derived_id("payment_refunded"));
    };
    for restart in 0..2 {
        let engine = engine(&place, hasty());
        // It fails once, and once its process is gone in the middle.
        for dies in [false, true] {
            loop {
                let died = &Notify::new();
                let work = |claim: Claim| async move {
                    note(&claim);
                    if dies {
                        died.notify_one();
                        std::future::pending::<()>().await;
                    }
                    Err(Failure::retryable("away"))
                };
                let before = ids.lock().unwrap().len();
                let (tenant, key, command) = (tenant(), key(), Pay { cents: 1 });
                tokio::select! {
                    _ = engine.run(&tenant, &key, &command, work) => {}
                    () = died.notified() => {}
                }
                if ids.lock().unwrap().len() > before {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert_eq!(ids.lock().unwrap().len(), 2 * (restart + 1));
    }
    let all = ids.lock().unwrap();
    assert!(all.iter().all(|id| *id == all[0]), "{all:?}");
    assert_eq!(others.lock().unwrap().len(), 1);
    assert!(!others.lock().unwrap().contains(&all[0]));
}

#[derive(Debug, thiserror::Error)]
#[error("no answer")]
struct NoAnswer;

impl CallError for NoAnswer {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

/// The mail was accepted, and its worker died before it could say so. The next delivery sends none: what became of it is
/// found out first, and then the message is done without another.
pub(super) async fn a_mail_that_was_sent_but_not_recorded_is_not_sent_again<P: Place>() {
    let place = P::fresh().await;
    let engine = engine(&place, hasty());
    let (sent, died) = (&Mutex::new(Vec::new()), &Notify::new());
    let work = |claim: Claim| async move {
        claim
            .call("mail", |key| async move {
                sent.lock().unwrap().push(key);
                died.notify_one();
                std::future::pending::<()>().await;
                Err::<(), _>(NoAnswer)
            })
            .await?;
        Ok(Reply::status(204))
    };
    let (tenant, key, command) = (tenant(), key(), Pay { cents: 1 });
    tokio::select! {
        ran = engine.run(&tenant, &key, &command, work) => panic!("{ran:?}"),
        () = died.notified() => {}
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        let ran = engine.run(&tenant, &key, &command, work).await;
        assert!(matches!(Delivery::of(&ran), Delivery::Later(_)), "{ran:?}");
    }
    assert_eq!(sent.lock().unwrap().len(), 1);
    // The mail server's own list has it, by the key that it was sent with.
    let key_of_mail = sent.lock().unwrap()[0].clone();
    let evidence = Evidence {
        key: key_of_mail,
        source: "outbox of the mail server".into(),
        state: CallState::Applied(b"null".into()),
    };
    assert!(engine.evidence(&evidence).await.unwrap());
    loop {
        engine.recover_once(10).await.unwrap();
        let ran = engine.run(&tenant, &key, &command, work).await;
        match Delivery::of(&ran) {
            Delivery::Ack => break,
            Delivery::Later(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Delivery::DeadLetter(reason) => panic!("{reason:?}"),
        }
    }
    assert_eq!(sent.lock().unwrap().len(), 1);
}

//! What is the same in every attempt: an id of the application's own, and downstream keys of a form of their own.

use std::sync::Mutex;
use std::time::Duration;

use idem_core::{
    CallClass, CallError, CallSpec, Claim, Engine, Failure, Fate, IdempotencyKey, IdempotentCommand, KeyForm,
    MemoryStore, NoOwnId, Outcome, Reply, Rules, Scope, Tenant,
};
use tokio::sync::Notify;

use crate::support::faulty::{Fails, FaultyStore, Request};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct AnswerLost;

impl CallError for AnswerLost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

struct Bench {
    memory: MemoryStore,
    store: FaultyStore,
    engine: Engine,
}

const RAIL: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A retry comes at once, and a lease is soon over, which no heartbeat renews.
fn bench() -> Bench {
    let memory = MemoryStore::new();
    let store = FaultyStore::over(memory.clone());
    let rules = Rules {
        backoff: Duration::from_millis(1),
        lease: Duration::from_millis(30),
        max_run: Duration::from_nanos(1),
        ..Rules::default()
    };
    let dedupes = CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) };
    let engine = Engine::builder(store.clone())
        .rules(rules)
        .namespace("shop")
        .call::<Pay>("charge", dedupes)
        .call::<Pay>("transfer", CallSpec::from(dedupes).key_form(KeyForm::text(35, RAIL)))
        .build()
        .unwrap();
    Bench { memory, store, engine }
}

impl Bench {
    /// Comes again until the work runs.
    async fn run<F>(&self, work: impl Fn(Claim) -> F) -> Outcome
    where
        F: Future<Output = Result<Reply, Failure>>,
    {
        loop {
            match self.engine.run(&tenant(), &key(), &Pay { cents: 5 }, &work).await.unwrap() {
                Outcome::Second(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                ran => return ran,
            }
        }
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

/// The first attempt dies with its call under way, the second fails, the third ends: one number.
#[tokio::test]
async fn an_id_of_the_applications_own_is_made_once() {
    let bench = bench();
    let (numbers, made, died) = (Mutex::new(Vec::new()), Mutex::new(0), Notify::new());
    let next_number = || {
        *made.lock().unwrap() += 1;
        format!("2026-{}", made.lock().unwrap())
    };
    let work = |claim: Claim| {
        let (numbers, died) = (&numbers, &died);
        async move {
            let number = claim.own_id("invoice", next_number).await?;
            assert_eq!(claim.own_id("invoice", || unreachable!("it has one")).await?, number);
            numbers.lock().unwrap().push(number.clone());
            let call = claim.open("charge").await?;
            match claim.attempt() {
                1 => {
                    died.notify_one();
                    std::future::pending().await
                }
                2 => Err(Failure::retryable("away")),
                _ => {
                    call.done(&number).await?;
                    Ok(Reply::status(201))
                }
            }
        }
    };
    tokio::select! {
        ran = bench.run(work) => panic!("{ran:?}"),
        () = died.notified() => {}
    }
    assert!(matches!(bench.run(work).await, Outcome::Failed { .. }));
    assert!(matches!(bench.run(work).await, Outcome::Done { .. }));
    assert_eq!(*numbers.lock().unwrap(), ["2026-1", "2026-1", "2026-1"]);
    let resource = bench.memory.record(&Scope::new(tenant(), "pay", key())).unwrap().resource.unwrap();
    assert_eq!((resource.kind.as_str(), resource.id.as_str()), ("invoice", "2026-1"), "who asks is pointed to it");
}

/// Nobody has an id that is not kept: not one whose write failed, and not one of an owner that was overtaken.
#[tokio::test]
async fn an_id_that_is_not_kept_is_nobodys() {
    let bench = bench();
    for _ in 0..4 {
        bench.store.plan(Request::Step, Fails::Before);
    }
    let codes = Mutex::new(Vec::new());
    let failed = bench
        .run(async |claim: Claim| {
            let refused = claim.own_id("invoice", || "lost".to_owned()).await.unwrap_err();
            codes.lock().unwrap().push(refused.code());
            Err(Failure::from(refused))
        })
        .await;
    assert!(matches!(failed, Outcome::Failed { .. }), "{failed:?}");
    assert_eq!(*codes.lock().unwrap(), ["STORE_UNAVAILABLE"]);
    // Its backoff is a millisecond at most.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let asleep = async |claim: Claim| {
        // Past the lease; meanwhile a retry takes over, and asks for its number first.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let other = bench.run(async |claim: Claim| {
            let number = claim.own_id("invoice", || "of the second".to_owned()).await?;
            assert_eq!(number, "of the second");
            Ok(Reply::status(201))
        });
        assert!(matches!(other.await, Outcome::Done { .. }));
        let late = claim.own_id("invoice", || "of the first".to_owned()).await;
        assert!(matches!(late, Err(NoOwnId::Lost)), "{late:?}");
        Ok(Reply::status(201))
    };
    let slow = bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, asleep).await.unwrap();
    assert!(matches!(slow, Outcome::Second(_)), "{slow:?}");
    let resource = bench.memory.record(&Scope::new(tenant(), "pay", key())).unwrap().resource.unwrap();
    assert_eq!(resource.id, "of the second");
}

/// An earlier attempt made the call with whatever it had.
#[tokio::test]
async fn an_id_comes_before_the_first_call() {
    let bench = bench();
    let codes = Mutex::new(Vec::new());
    let done = bench
        .run(async |claim: Claim| {
            let _: u32 = claim.call("charge", |_| async { Ok::<_, AnswerLost>(7) }).await?;
            let after_call = claim.own_id("invoice", || "made".to_owned()).await.unwrap_err();
            claim.makes("payment", "pay_1").await;
            let another = claim.own_id("invoice", || "made".to_owned()).await.unwrap_err();
            codes.lock().unwrap().extend([after_call.code(), another.code()]);
            Ok(Reply::status(201))
        })
        .await;
    assert!(matches!(done, Outcome::Done { .. }), "{done:?}");
    assert_eq!(*codes.lock().unwrap(), ["OWN_ID_AFTER_CALL", "OWN_ID_OF_ANOTHER_KIND"]);
}

#[tokio::test]
async fn a_calls_keys_have_the_form_that_it_was_declared_with() {
    let bench = bench();
    let keys = Mutex::new(Vec::new());
    let work = |claim: Claim| {
        let keys = &keys;
        async move {
            for call in ["charge", "transfer"] {
                let call = claim.open(call).await?;
                keys.lock().unwrap().push(call.key().as_str().to_owned());
            }
            Err(Failure::retryable("away"))
        }
    };
    for _ in 0..2 {
        bench.run(work).await;
    }
    let keys = keys.into_inner().unwrap();
    assert_eq!(keys[..2], keys[2..], "the same in every attempt");
    assert!(keys[0].starts_with("charge_") && keys[0].len() == 33, "{keys:?}");
    assert!(keys[1].len() == 35 && keys[1].bytes().all(|byte| RAIL.as_bytes().contains(&byte)), "{keys:?}");
}

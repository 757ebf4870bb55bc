//! How the work ends, and what the first client and the next one get for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::select;
use idem_axum::{CallClass, Claim, Failure, Fate, IdempotencyKey, MemoryStore, Reply, Rules, Tenant};
use idem_core::{Begin, StatusName};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::http::bench::{Effects, LateClock, ProviderFailed, Server, TENANT, idem, pay, record, settled};
use crate::http::command::Pay;
use crate::support::faulty::{Fails, FaultyStore, Request};

/// A service whose work counts its runs and then goes by their number.
async fn server<F>(store: &MemoryStore, effects: &Effects, work: fn(usize, Claim) -> F) -> Server
where
    F: Future<Output = Result<Reply, Failure>> + Send + 'static,
{
    let happening = effects.clone();
    let work = move |_, claim| {
        happening.happen();
        work(happening.count(), claim)
    };
    let idem = idem(store.clone()).call::<Pay>("book", CallClass::Neither).build().unwrap();
    Server::start(pay(idem, work)).await
}

#[tokio::test]
async fn a_key_whose_owner_died_is_free_after_its_lease_and_not_after_its_window() {
    let (clock, effects, go) = (LateClock::default(), Effects::default(), Arc::new(Semaphore::new(0)));
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let idem = idem(store).build().unwrap();
    let key: IdempotencyKey = "k".parse().unwrap();
    let command = Pay { account: "acc_1".into(), cents: 1000 };
    let Ok(Begin::Run(claim)) = idem.engine().begin(&Tenant::new(TENANT).unwrap(), &key, &command).await else {
        panic!("the key was not free")
    };
    // The process dies.
    drop(claim);
    let (happening, gate) = (effects.clone(), Arc::clone(&go));
    let work = move |_, _| {
        happening.happen();
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(StatusCode::CREATED)
        }
    };
    let server = Server::start(pay(idem, work)).await;
    let early = server.pay("k").await;
    assert_eq!((early.status, early.code()), (409, "IDEMPOTENCY_REQUEST_IN_PROGRESS".to_owned()));
    clock.pass(Rules::default().lease + Duration::from_secs(1));
    // Two at once: the one that does not run it is answered while the other waits.
    let (one, two) = (pin!(server.pay("k")), pin!(server.pay("k")));
    let (refused, other) = select(one, two).await.factor_first();
    assert_eq!((refused.status, refused.code()), (409, "IDEMPOTENCY_REQUEST_IN_PROGRESS".to_owned()));
    go.add_permits(1);
    assert_eq!((other.await.status, effects.count()), (201, 1));
}

#[tokio::test]
async fn an_answer_whose_storing_fails_once_is_given_once_it_is_stored() {
    for fails in [Fails::Before, Fails::After] {
        let store = FaultyStore::over(MemoryStore::new());
        store.plan(Request::Finish, fails);
        let effects = Effects::default();
        let happening = effects.clone();
        let work = move |_, _| {
            happening.happen();
            async { Ok(StatusCode::CREATED) }
        };
        let server = Server::start(pay(idem(store.clone()).build().unwrap(), work)).await;
        let first = server.pay("k").await;
        assert_eq!((first.status, first.replayed()), (201, false), "{fails:?}");
        assert!(server.pay("k").await.replayed());
        assert_eq!((effects.count(), store.planned()), (1, 0));
    }
}

#[tokio::test]
async fn an_answer_whose_storing_fails_for_long_is_not_given_and_its_retry_gets_it() {
    let store = FaultyStore::over(MemoryStore::new());
    (0..4).for_each(|_| store.plan(Request::Finish, Fails::Before));
    let rules = Rules { patience: Duration::from_millis(100), ..Rules::default() };
    let effects = Effects::default();
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async { Ok(StatusCode::CREATED) }
    };
    let server = Server::start(pay(idem(store.clone()).rules(rules).build().unwrap(), work)).await;
    let first = server.pay("k").await;
    assert_eq!((first.status, first.code()), (503, "IDEMPOTENCY_OUTCOME_NOT_STORED".to_owned()));
    assert_eq!(first.json()["next"], "wait");
    let after = settled(&server, "k").await;
    assert_eq!((after.status, after.replayed()), (201, true));
    assert_eq!((effects.count(), store.planned()), (1, 0));
}

#[tokio::test]
async fn a_503_of_the_works_own_goes_out_with_a_retry_after_and_the_retry_runs() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let server = server(&store, &effects, |run, _| async move {
        Ok(match run {
            1 => Reply::status(503).header("x-own", "1").body("busy"),
            2 => Reply::status(429).header("retry-after", "7"),
            3 => Reply::status(500).body("broken"),
            _ => Reply::status(201),
        })
    })
    .await;
    let busy = server.pay("k").await;
    assert_eq!((busy.status, busy.body.as_slice(), busy.header("x-own")), (503, &b"busy"[..], Some("1")));
    assert_eq!(busy.header("retry-after"), Some("1"));
    sleep(Duration::from_millis(20)).await;
    let limited = server.pay("k").await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("7")));
    sleep(Duration::from_millis(20)).await;
    let broken = server.pay("k").await;
    assert_eq!((broken.status, broken.body.as_slice(), broken.header("retry-after")), (500, &b"broken"[..], None));
    assert_eq!(record(&store, "k").unwrap().status.name(), StatusName::FailedRetryable);
    sleep(Duration::from_millis(20)).await;
    let done = server.pay("k").await;
    assert_eq!((done.status, done.replayed()), (201, false));
    assert_eq!(effects.count(), 4);
}

#[tokio::test]
async fn a_500_after_a_call_that_must_not_be_made_twice_is_not_run_again() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let server = server(&store, &effects, |_, claim| async move {
        // Made, and nobody heard how it went.
        let _open = claim.open("book").await?;
        Ok(Reply::status(500))
    })
    .await;
    assert_eq!(server.pay("k").await.status, 500);
    let second = server.pay("k").await;
    assert_eq!((second.status, second.code()), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN".to_owned()));
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_failure_says_itself_whether_it_is_kept_retried_or_unknown() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let kept = server(&store, &effects, |_, _| async { Err(Failure::replayable(Reply::status(500).body("no"))) }).await;
    assert_eq!(kept.pay("kept").await.status, 500);
    let again = kept.pay("kept").await;
    assert_eq!((again.status, again.body.as_slice(), again.replayed()), (500, &b"no"[..], true));

    let refused = server(&store, &effects, |_, _| async { Err(Failure::reply(Reply::status(409).body("sold"))) }).await;
    assert_eq!(refused.pay("refused").await.status, 409);
    assert!(refused.pay("refused").await.replayed());

    let unknown = server(&store, &effects, |_, _| async { Err(Failure::unknown("no answer")) }).await;
    let first = unknown.pay("unknown").await;
    assert_eq!((first.status, first.code()), (503, "IDEMPOTENCY_OUTCOME_UNKNOWN".to_owned()));
    assert_eq!(unknown.pay("unknown").await.status, 409);

    let answering = server(&store, &effects, |_, _| async {
        Err(Failure::unknown("no answer").answering(Reply::status(202).body("we will see")))
    })
    .await;
    let first = answering.pay("answering").await;
    assert_eq!((first.status, first.body.as_slice()), (202, &b"we will see"[..]));
    assert_eq!(effects.count(), 4);
}

#[tokio::test]
async fn an_error_without_an_answer_is_no_bare_500_and_may_be_retried() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let server = server(&store, &effects, |run, _| async move {
        if run == 1 {
            "not a number".parse::<u32>()?;
        }
        Ok(Reply::status(201))
    })
    .await;
    let first = server.pay("k").await;
    assert_eq!((first.status, first.code()), (503, "IDEMPOTENCY_WORK_FAILED".to_owned()));
    assert_eq!(first.json()["next"], "same_key");
    assert!(!String::from_utf8_lossy(&first.body).contains("invalid digit"), "the error belongs into the log");
    sleep(Duration::from_millis(20)).await;
    assert_eq!(server.pay("k").await.status, 201);
}

#[tokio::test]
async fn a_panic_before_the_future_is_made_counts_as_one_of_the_work() {
    fn refuse_to_start() -> std::future::Ready<Result<(), Failure>> {
        panic!("no future at all")
    }
    let work = |_, _| refuse_to_start();
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
    assert_eq!(server.pay("k").await.code(), "IDEMPOTENCY_WORK_FAILED");
}

#[tokio::test]
async fn a_panic_after_a_call_that_must_not_be_made_twice_is_not_run_again() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let server = server(&store, &effects, |_, claim| async move {
        let _: () = claim.call("book", async |_| panic!("in the middle") as Result<(), ProviderFailed>).await?;
        Ok(Reply::status(201))
    })
    .await;
    let first = server.pay("k").await;
    assert_eq!((first.status, first.code()), (503, "IDEMPOTENCY_OUTCOME_UNKNOWN".to_owned()));
    assert_eq!(record(&store, "k").unwrap().status.name(), StatusName::Unknown);
    assert_eq!(server.pay("k").await.code(), "IDEMPOTENCY_OUTCOME_UNKNOWN");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_refused_calls_own_reply_is_the_answer() {
    #[derive(Debug, thiserror::Error)]
    #[error("declined")]
    struct Declined;

    impl idem_axum::CallError for Declined {
        fn fate(&self) -> Fate {
            Fate::Refused
        }

        fn reply(&self) -> Option<Reply> {
            Some(Reply::status(402).header("content-type", "text/plain").body("declined"))
        }
    }

    let (store, effects) = (MemoryStore::new(), Effects::default());
    let server = server(&store, &effects, |_, claim| async move {
        claim.call("book", async |_| Err::<(), _>(Declined)).await?;
        Ok(Reply::status(201))
    })
    .await;
    let (first, second) = (server.pay("k").await, server.pay("k").await);
    assert_eq!((first.status, first.body.as_slice()), (402, &b"declined"[..]));
    assert_eq!((second.status, &second.body, second.replayed()), (402, &first.body, true));
    assert_eq!(effects.count(), 1);
}

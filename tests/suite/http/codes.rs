//! Every code with its status, its `next` and its `Retry-After`, reached by requests.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use idem_axum::{CallClass, Code, Failure, Fate, MemoryStore, Reply, Rules, Tenant};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::http::bench::{Answer, LateClock, ProviderFailed, Server, StillClock, idem, pay, payment, route, unscoped};
use crate::http::command::{Pay, PayNewer};
use crate::http::held::Held;
use crate::http::rebuilt::{misdeclared, rebuilding};
use crate::support::faulty::{Fails, FaultyStore, Request};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Status, `next`, and whether a `Retry-After` says when.
fn expected(code: Code) -> (u16, Option<&'static str>, bool) {
    match code {
        Code::KeyMissing | Code::KeyInvalid | Code::RequestInvalid => (400, Some("fix"), false),
        Code::KeyReused => (409, Some("look"), false),
        Code::InProgress | Code::OutcomeUnknown => (409, Some("wait"), true),
        Code::OutcomeUnresolved => (409, Some("ask"), false),
        Code::ResponseNotKept | Code::ContractRetired => (409, Some("look"), false),
        Code::KeyExpired => (410, Some("look"), false),
        Code::ContractUnknown | Code::OutcomeNotStored | Code::ResponseNotRendered => (503, Some("wait"), true),
        Code::Overloaded | Code::StoreUnavailable | Code::RetryLater | Code::WorkFailed => {
            (503, Some("same_key"), true)
        }
        Code::CallRefused => (422, Some("fix"), false),
        Code::ScopeMissing | Code::SetupWrong => (500, None, false),
        _ => panic!("no row for {code:?}"),
    }
}

/// Brings a service to refuse with that code.
async fn provoke(code: Code) -> Answer {
    match code {
        Code::KeyMissing => {
            let server = paid().await;
            server.send(server.request("/pay").json(&payment())).await
        }
        Code::KeyInvalid => paid().await.pay("a b").await,
        Code::RequestInvalid => {
            let server = paid().await;
            let request = server.request("/pay").header("idempotency-key", "k");
            server.send(request.header("content-type", "application/json").body("{")).await
        }
        Code::KeyReused => {
            let server = paid().await;
            server.pay("k").await;
            server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await
        }
        Code::InProgress => {
            let (held, _first) = running().await;
            held.server.pay("k").await
        }
        Code::OutcomeUnknown => {
            let server = calling(CallClass::Neither, Fate::Unknown, &LateClock::default()).await;
            server.pay("k").await;
            server.pay("k").await
        }
        Code::OutcomeUnresolved => {
            let clock = LateClock::default();
            let server = calling(CallClass::Dedupes { retention: HOUR }, Fate::Unknown, &clock).await;
            server.pay("k").await;
            clock.pass(2 * HOUR);
            server.pay("k").await
        }
        Code::ResponseNotKept => {
            let work = async |_, _| Ok((StatusCode::CREATED, [("location", "/big")], vec![b'x'; 300 * 1024]));
            let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
            assert_eq!(server.pay("k").await.body.len(), 300 * 1024);
            server.pay("k").await
        }
        Code::KeyExpired => {
            let clock = LateClock::default();
            let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
            let server = Server::start(pay(idem(store).build().unwrap(), async |_, _| Ok(()))).await;
            server.pay("k").await;
            clock.pass(25 * HOUR);
            server.pay("k").await
        }
        Code::ContractUnknown => {
            let server = two_releases().await;
            server.post("/newer", "k", payment()).await;
            server.pay("k").await
        }
        Code::ContractRetired => {
            let server = two_releases().await;
            server.pay("k").await;
            server.post("/newer", "k", payment()).await
        }
        Code::ResponseNotRendered => {
            let server = rebuilding(|_| async { Err("the database is away".into()) }).await;
            server.pay("k").await;
            server.pay("k").await
        }
        Code::Overloaded => {
            let work = async |_, _| -> Result<(), Failure> { panic!("there was room") };
            let idem = idem(MemoryStore::new()).max_running(0).build().unwrap();
            Server::start(pay(idem, work)).await.pay("k").await
        }
        Code::StoreUnavailable => {
            let store = FaultyStore::over(MemoryStore::new());
            store.plan(Request::Claim, Fails::Before);
            store.plan(Request::Claim, Fails::Before);
            let work = async |_, _| -> Result<(), Failure> { panic!("it ran without a claim") };
            Server::start(pay(idem(store).build().unwrap(), work)).await.pay("k").await
        }
        Code::RetryLater => {
            let server = failing(MemoryStore::new()).await;
            server.pay("k").await;
            server.pay("k").await
        }
        Code::WorkFailed => failing(MemoryStore::new()).await.pay("k").await,
        Code::OutcomeNotStored => {
            let store = FaultyStore::over(MemoryStore::new());
            (0..8).for_each(|_| store.plan(Request::Finish, Fails::Before));
            let rules = Rules { patience: Duration::from_millis(100), ..Rules::default() };
            let idem = idem(store).rules(rules).build().unwrap();
            Server::start(pay(idem, async |_, _| Ok(()))).await.pay("k").await
        }
        Code::CallRefused => calling(CallClass::Neither, Fate::Refused, &LateClock::default()).await.pay("k").await,
        Code::ScopeMissing => {
            let idem = unscoped(MemoryStore::new()).scope_fn(|_| None::<Tenant>).build().unwrap();
            Server::start(pay(idem, async |_, _| Ok(()))).await.pay("k").await
        }
        Code::SetupWrong => Server::start(misdeclared(MemoryStore::new())).await.pay("k").await,
        _ => panic!("nothing reaches {code:?}"),
    }
}

#[tokio::test]
async fn every_code_is_reached_and_answers_by_the_table() {
    for &code in Code::ALL {
        let answer = provoke(code).await;
        let (status, next, waits) = expected(code);
        let problem = answer.json();
        assert_eq!(answer.code(), code.as_str(), "{answer:?}");
        assert_eq!(answer.status, status, "{code:?}");
        assert_eq!(problem["status"], status, "{code:?}");
        assert_eq!(problem["next"].as_str(), next, "{code:?}");
        assert_eq!(problem["type"], format!("urn:idem:problem:{}", code.as_str()));
        assert_eq!(problem["title"], code.title());
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{code:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{code:?}");
        let wait = answer.header("retry-after").map(|wait| wait.parse::<u64>().unwrap());
        assert_eq!(wait.is_some(), waits, "{code:?} waits {wait:?}");
        assert!(wait.is_none_or(|wait| (1..=60).contains(&wait)), "{code:?} waits {wait:?}");
        assert!(!answer.replayed(), "{code:?}");
    }
}

#[tokio::test]
async fn retry_after_is_the_wait_that_the_work_asked_for_rounded_up() {
    let clock = StillClock::new();
    let server = failing(MemoryStore::with_clock(std::sync::Arc::new(clock.clone()))).await;
    assert_eq!(server.pay("k").await.header("retry-after"), Some("42"));
    for (passed, left) in [(0, "42"), (1, "41"), (40, "1")] {
        clock.pass(Duration::from_secs(passed));
        assert_eq!(server.pay("k").await.header("retry-after"), Some(left));
    }
}

#[tokio::test]
async fn a_mismatch_tells_what_became_of_the_first() {
    let server = paid().await;
    server.pay("k").await;
    let answer = server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await;
    assert_eq!(answer.header("link"), Some("</payments/1>; rel=\"related\""));
    assert_eq!(answer.header("retry-after"), None);
    let problem = answer.json();
    assert_eq!(problem["safe_new_key"], false);
    let original = &problem["original"];
    assert_eq!(original["state"], "completed");
    assert_eq!(original["status"], 201);
    assert_eq!(original["resource"], json!({ "type": "payment", "id": "1" }));
    let created = original["created_at"].as_str().unwrap();
    assert!(created.len() == 20 && created.starts_with("20") && created.ends_with('Z'), "{created}");
}

#[tokio::test]
async fn a_mismatch_with_a_final_refusal_says_that_a_new_key_is_safe() {
    let work = async |_, _| Ok((StatusCode::PAYMENT_REQUIRED, "declined"));
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
    server.pay("k").await;
    let problem = server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await.json();
    assert_eq!(problem["safe_new_key"], true);
    assert_eq!(problem["original"]["state"], "failed_replayable");
    assert_eq!(problem["original"]["status"], 402);
    assert_eq!(problem["original"].get("resource"), None);
}

#[tokio::test]
async fn a_mismatch_while_the_first_runs_has_no_retry_after() {
    let (held, _first) = running().await;
    let answer = held.server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await;
    assert_eq!(answer.code(), Code::KeyReused.as_str());
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.json()["original"]["state"], "in_progress");
}

#[tokio::test]
async fn what_was_not_kept_is_pointed_to() {
    let answer = provoke(Code::ResponseNotKept).await;
    assert_eq!(answer.header("location"), Some("/big"));
}

#[tokio::test]
async fn a_refused_call_is_kept_and_given_again_with_the_same_bytes() {
    let server = calling(CallClass::Neither, Fate::Refused, &LateClock::default()).await;
    let first = server.pay("k").await;
    let second = server.pay("k").await;
    assert_eq!((second.status, second.replayed()), (422, true));
    assert_eq!(second.body, first.body);
    assert_eq!(second.header("content-type"), Some("application/problem+json"));
    assert_eq!(second.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn the_first_client_of_an_unknown_outcome_is_told_to_wait_with_503() {
    let server = calling(CallClass::Neither, Fate::Unknown, &LateClock::default()).await;
    let first = server.pay("k").await;
    assert_eq!((first.status, first.code()), (503, Code::OutcomeUnknown.as_str().to_owned()));
    assert_eq!(first.json()["next"], "wait");
    assert!(first.header("retry-after").is_some());
}

/// A service whose work runs, and the client who waits for it.
async fn running() -> (Held, TcpStream) {
    let held = Held::start().await;
    let first = held.server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
    held.begun.reach(1).await;
    (held, first)
}

/// A service whose payments succeed.
async fn paid() -> Server {
    let work = async |_, claim: idem_axum::Claim| {
        claim.makes("payment", "1").await;
        Ok((StatusCode::CREATED, [("location", "/payments/1")], Json(json!({ "id": "1" }))))
    };
    Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await
}

/// A service whose payments fail, and ask for 42 s (less a bit, so that the rounding shows).
async fn failing(store: MemoryStore) -> Server {
    let work = async |_, _| -> Result<Reply, Failure> {
        Err(Failure::retryable("the ledger is away").retry_after(Duration::from_millis(41_900)))
    };
    Server::start(pay(idem(store).build().unwrap(), work)).await
}

/// A service whose only call ends so.
async fn calling(class: CallClass, fate: Fate, clock: &LateClock) -> Server {
    let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
    let work = move |_, claim: idem_axum::Claim| async move {
        let charged: Value = claim.call("charge", async |_| Err(ProviderFailed(fate))).await?;
        Ok(Json(charged))
    };
    Server::start(pay(idem(store).call::<Pay>("charge", class).build().unwrap(), work)).await
}

/// Two releases of one operation over one store.
async fn two_releases() -> Server {
    let idem = idem(MemoryStore::new()).build().unwrap();
    let newer = route::<PayNewer, Json<PayNewer>, _, _, _>("/newer", async |_, _| Ok(()));
    Server::start(pay(idem.clone(), async |_, _| Ok(())).merge(newer.with_state(idem))).await
}

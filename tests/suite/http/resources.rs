//! Refusals that point to what the first request made.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use idem_axum::{CallClass, Claim, Failure, Idem, MemoryStore, Reply};
use serde_json::json;

use crate::http::bench::{Answer, LateClock, Server, idem, pay, payment, route};
use crate::http::command::{Pay, PayNewer};

const HOUR: Duration = Duration::from_secs(60 * 60);

struct Bench {
    server: Server,
    idem: Idem,
    clock: LateClock,
}

/// Payments that name their resource, and then end well, or with a call of that class left open.
async fn bench(open: Option<CallClass>) -> Bench {
    let clock = LateClock::default();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let work = move |_, claim: Claim| async move {
        claim.makes("payment", "1").await;
        if open.is_none() {
            return Ok(Reply::status(201));
        }
        drop(claim.open("charge").await?);
        Err(Failure::retryable("the ledger is away"))
    };
    let idem = idem(store).call::<Pay>("charge", open.unwrap_or(CallClass::Neither)).build().unwrap();
    let newer = route::<PayNewer, Json<PayNewer>, _, _, _>("/newer", async |_, _| Ok(())).with_state(idem.clone());
    Bench { server: Server::start(pay(idem.clone(), work).merge(newer)).await, idem, clock }
}

fn points(answer: &Answer, status: u16, code: &str, next: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{answer:?}");
    assert_eq!((&answer.json()["next"], answer.header("retry-after")), (&json!(next), None));
    assert_eq!(answer.json()["resource"], json!({ "type": "payment", "id": "1" }));
}

#[tokio::test]
async fn a_key_whose_window_is_over() {
    let bench = bench(None).await;
    bench.server.pay("k").await;
    bench.clock.pass(25 * HOUR);
    points(&bench.server.pay("k").await, 410, "IDEMPOTENCY_KEY_EXPIRED", "look");
}

#[tokio::test]
async fn a_key_of_a_contract_that_is_not_kept_any_more() {
    let bench = bench(None).await;
    bench.server.pay("k").await;
    let later = bench.server.post("/newer", "k", payment()).await;
    points(&later, 409, "IDEMPOTENCY_CONTRACT_RETIRED", "look");
}

#[tokio::test]
async fn a_failure_with_a_call_whose_provider_has_forgotten_it() {
    let bench = bench(Some(CallClass::Dedupes { retention: HOUR })).await;
    bench.server.pay("k").await;
    bench.clock.pass(2 * HOUR);
    points(&bench.server.pay("k").await, 409, "IDEMPOTENCY_OUTCOME_UNRESOLVED", "ask");
}

#[tokio::test]
async fn an_unknown_outcome_that_a_worker_has_parked_since_nobody_can_be_asked() {
    let bench = bench(Some(CallClass::Neither)).await;
    bench.server.pay("k").await;
    // Until then nobody has looked.
    assert_eq!(bench.server.pay("k").await.code(), "IDEMPOTENCY_OUTCOME_UNKNOWN");
    bench.clock.pass(HOUR);
    bench.idem.engine().recover_once(10).await.unwrap();
    points(&bench.server.pay("k").await, 409, "IDEMPOTENCY_OUTCOME_UNRESOLVED", "ask");

    let mismatch = bench.server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await;
    assert_eq!((mismatch.status, mismatch.header("retry-after")), (409, None));
    let problem = mismatch.json();
    assert_eq!((&problem["next"], &problem["safe_new_key"]), (&json!("look"), &json!(false)));
    assert_eq!(problem["original"]["state"], "unknown_requires_recovery");
    assert_eq!(problem["original"]["resource"], json!({ "type": "payment", "id": "1" }));
}

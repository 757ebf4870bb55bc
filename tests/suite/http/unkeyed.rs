//! Operations that take requests without a key.

use std::collections::HashSet;

use axum::http::StatusCode;
use axum::{Json, Router};
use idem_axum::{CallClass, Claim, Failure, Fate, MemoryStore, Reply};
use idem_core::Store;
use serde_json::json;

use crate::http::bench::{Answer, Effects, ProviderFailed, Server, idem, pay, payment, route};
use crate::http::command::{Pay, Refund};
use crate::support::faulty::FaultyStore;

async fn without_a_key(server: &Server) -> Answer {
    server.send(server.request("/pay").json(&payment())).await
}

/// `/pay` with an optional key.
fn optional<W, F>(store: &(impl Store + Clone + 'static), work: W) -> Router
where
    W: Fn(Pay, Claim) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Failure>> + Send + 'static,
{
    let idem = idem(store.clone())
        .operation::<Pay>(|pay| pay.optional_key())
        .call::<Pay>("charge", CallClass::Neither)
        .build()
        .unwrap();
    pay(idem, work)
}

#[tokio::test]
async fn two_requests_without_a_key_are_not_taken_for_one() {
    let (memory, effects) = (MemoryStore::new(), Effects::default());
    let store = FaultyStore::over(memory.clone());
    let happening = effects.clone();
    let server = Server::start(optional(&store, move |_, claim| {
        happening.happen();
        async move {
            claim.makes("payment", "1").await;
            claim.checkpoint("priced", 1, &7).await?;
            let key: String = claim.call("charge", async |key| Ok::<_, ProviderFailed>(key.to_string())).await?;
            let told = json!([claim.derived_id("pay"), key, claim.scope().key().as_str()]);
            Ok(Reply::status(201).header("location", "/1").body(told.to_string()))
        }
    }))
    .await;
    let (first, second) = (without_a_key(&server).await, without_a_key(&server).await);
    let mut names = HashSet::new();
    for answer in [&first, &second] {
        assert_eq!((answer.status, answer.replayed()), (201, false));
        assert_eq!((answer.header("location"), answer.header("idempotency-expires")), (Some("/1"), None));
        names.extend(answer.json().as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()));
    }
    assert_eq!(names.len(), 6, "ids and downstream keys are random: {names:?}");
    assert_eq!((effects.count(), store.requests(), memory.len()), (2, 0, 0), "the store does not hear of them");
    // With a key it is as safe as ever.
    assert_eq!(server.pay("k").await.status, 201);
    assert!(server.pay("k").await.replayed());
    assert_eq!((effects.count(), memory.len()), (3, 1));
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_refused_where_none_is_needed_too() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let server = Server::start(optional(&store, move |_, _| {
        happening.happen();
        async { Ok(Reply::status(201)) }
    }))
    .await;
    for lines in
        [&[&b"idempotency-key: "[..]][..], &[b"idempotency-key: \xFF"], &[b"idempotency-key: a", b"idempotency-key: a"]]
    {
        let answer = server.raw(lines).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("IDEMPOTENCY_KEY_INVALID"), "{answer}");
    }
    assert_eq!((effects.count(), store.len()), (0, 0));
}

#[tokio::test]
async fn only_the_operation_that_says_so_takes_requests_without_a_key() {
    let idem = idem(MemoryStore::new()).operation::<Refund>(|refund| refund.optional_key()).build().unwrap();
    let refunds = route::<Refund, Json<Refund>, _, _, _>("/refunds", async |_, _| Ok("refunded"));
    let server = Server::start(pay(idem.clone(), async |_, _| Ok("paid")).merge(refunds.with_state(idem))).await;
    assert_eq!(without_a_key(&server).await.code(), "IDEMPOTENCY_KEY_MISSING");
    assert_eq!(server.send(server.request("/refunds").json(&payment())).await.body, b"refunded");
}

#[tokio::test]
async fn a_failure_without_a_key_invites_no_automatic_retry() {
    let server =
        Server::start(optional(&MemoryStore::new(), async |payment: Pay, claim| match payment.account.as_str() {
            "busy" => Ok(Reply::status(503).body("busy")),
            "unknown" => {
                let _: () = claim.call("charge", async |_| Err(ProviderFailed(Fate::Unknown))).await?;
                Ok(Reply::status(201))
            }
            _ => Err("it broke".into()),
        }))
        .await;
    let send = async |account: &str| {
        server.send(server.request("/pay").json(&json!({ "account": account, "cents": 1 }))).await
    };
    for account in ["broken", "unknown"] {
        let failed = send(account).await;
        assert_eq!((failed.status, failed.code()), (500, "IDEMPOTENCY_WORK_FAILED".to_owned()), "{account}");
        assert_eq!((&failed.json()["next"], failed.header("retry-after")), (&json!("look"), None), "{account}");
    }
    let own = send("busy").await;
    assert_eq!((own.status, own.body.as_slice(), own.header("retry-after")), (503, &b"busy"[..], None));
}

#[tokio::test]
async fn an_undeclared_call_is_not_made_without_a_key_either() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let server = Server::start(optional(&store, move |_, claim: Claim| {
        let happening = happening.clone();
        async move {
            let _: () = claim
                .call("undeclared", async |_| {
                    happening.happen();
                    Ok::<_, ProviderFailed>(())
                })
                .await?;
            Ok(Reply::status(StatusCode::CREATED.as_u16()))
        }
    }))
    .await;
    assert_eq!(without_a_key(&server).await.status, 500);
    assert_eq!(effects.count(), 0);
}

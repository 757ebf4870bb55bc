//! What `draft-ietf-httpapi-idempotency-key-header-07` asks of a server, and where idem goes another way.

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use idem_axum::{Idem, Idempotent, MemoryStore, Profile};
use idem_core::StatusName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::http::bench::{Answer, Effects, Server, idem, payment, record};
use crate::http::command::Pay;
use crate::http::held::Held;

struct Bench {
    server: Server,
    store: MemoryStore,
    effects: Effects,
}

/// Every method on one path makes a payment; two of them under a key.
async fn bench() -> Bench {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let protected = async move |payment: Idempotent<Pay>| {
        let work = move |payment: Pay, _| {
            happening.happen();
            async move { Ok((StatusCode::OK, Json(json!({ "cents": payment.cents })))) }
        };
        payment.execute(work).await
    };
    let happening = effects.clone();
    let unprotected = async move || {
        happening.happen();
        StatusCode::OK
    };
    let methods = get(async || "a list").post(protected.clone()).patch(protected.clone()).delete(unprotected);
    let router = Router::<Idem>::new().route("/pay", methods.put(protected));
    let idem = idem(store.clone()).profile(Profile::Ietf).build().unwrap();
    Bench { server: Server::start(router.with_state(idem)).await, store, effects }
}

impl Bench {
    async fn send(&self, method: Method, key: Option<&str>, body: &Value) -> Answer {
        let url = format!("http://{}/pay", self.server.address);
        let request = reqwest::Client::new().request(method, url).json(body);
        self.server.send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
    }
}

fn is_problem(answer: &Answer) {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    for member in ["type", "title", "detail"] {
        assert!(answer.json()[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {answer:?}");
    }
}

#[tokio::test]
async fn no_key_an_empty_one_too_long_a_one_and_a_list_are_400_and_a_problem() {
    let bench = bench().await;
    for key in [None, Some(""), Some("k".repeat(256).as_str()), Some("one,two")] {
        let answer = bench.send(Method::POST, key, &payment()).await;
        assert_eq!(answer.status, 400, "{key:?}");
        is_problem(&answer);
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (0, 0));
}

#[tokio::test]
async fn the_first_request_runs_and_its_status_and_bytes_are_kept() {
    let bench = bench().await;
    let key = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    let first = bench.send(Method::POST, Some(key), &payment()).await;
    assert_eq!((first.status, first.json(), first.replayed()), (200, json!({ "cents": 1000 }), false));
    let kept = record(&bench.store, key).unwrap();
    assert_eq!(kept.status.name(), StatusName::Completed);
    let idem_core::Status::Completed(finished) = kept.status else { panic!("it is completed") };
    assert_eq!((finished.response.status, finished.response.body), (200, Some(first.body)));
    assert_eq!(bench.effects.count(), 1);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_marked_and_nothing_happens_twice() {
    let bench = bench().await;
    let first = bench.send(Method::POST, Some("k"), &payment()).await;
    for _ in 0..3 {
        let again = bench.send(Method::POST, Some("k"), &payment()).await;
        assert_eq!((again.status, &again.body, again.replayed()), (200, &first.body, true));
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (1, 1));
}

#[tokio::test]
async fn a_key_with_another_body_is_422_in_the_drafts_profile_and_a_problem() {
    let bench = bench().await;
    bench.send(Method::POST, Some("k"), &payment()).await;
    let other = bench.send(Method::POST, Some("k"), &json!({ "account": "acc_2", "cents": 1 })).await;
    assert_eq!(other.status, 422);
    is_problem(&other);
    assert_eq!(bench.effects.count(), 1);
}

#[tokio::test]
async fn a_request_while_the_first_is_processed_is_409_and_a_problem() {
    let held = Held::start().await;
    let _first = held.server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
    held.begun.reach(1).await;
    let answer = held.server.pay("k").await;
    assert_eq!(answer.status, 409);
    is_problem(&answer);
    assert_eq!(held.begun.count(), 1);
}

#[tokio::test]
async fn a_patch_is_protected_and_a_get_is_not_looked_at() {
    let bench = bench().await;
    assert_eq!(bench.send(Method::GET, Some("k"), &payment()).await.body, b"a list");
    assert!(bench.store.is_empty());
    bench.send(Method::PATCH, Some("k"), &payment()).await;
    assert!(bench.send(Method::PATCH, Some("k"), &payment()).await.replayed());
    assert_eq!(bench.effects.count(), 1);
}

// Two rules that others add to the draft, and that idem does not follow; `docs/http.md` says why.

#[tokio::test]
async fn the_same_body_under_another_key_is_another_request() {
    let bench = bench().await;
    for key in ["k-1", "k-2"] {
        let answer = bench.send(Method::POST, Some(key), &payment()).await;
        assert_eq!((answer.status, answer.replayed()), (200, false));
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (2, 2));
}

#[tokio::test]
async fn a_put_is_protected_where_its_handler_says_so_and_a_delete_passes_where_it_does_not() {
    let bench = bench().await;
    bench.send(Method::PUT, Some("k"), &payment()).await;
    assert!(bench.send(Method::PUT, Some("k"), &payment()).await.replayed());
    assert_eq!(bench.effects.count(), 1);
    for effects in 2..4 {
        let answer = bench.send(Method::DELETE, Some("k"), &payment()).await;
        assert_eq!((answer.status, answer.replayed(), bench.effects.count()), (200, false, effects));
    }
    assert_eq!(bench.store.len(), 1);
}

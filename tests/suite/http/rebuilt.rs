//! Answers that are not stored, and written anew for each later request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use idem_axum::{Failure, Idempotent, Made, MemoryStore, Replay, Reply, ResourceRef};
use idem_core::Status;

use crate::http::bench::{Effects, Server, idem, payment, record};
use crate::http::command::Pay;
use serde_json::json;

/// `/pay`, which answers with a secret, and later requests by `render`.
fn router<F>(
    store: MemoryStore,
    effects: &Effects,
    render: impl Fn(Made) -> F + Clone + Send + Sync + 'static,
) -> Router
where
    F: Future<Output = Result<Option<Reply>, Failure>> + Send + 'static,
{
    versioned(3, store, effects, render)
}

fn versioned<F>(
    schema_version: u32,
    store: MemoryStore,
    effects: &Effects,
    render: impl Fn(Made) -> F + Clone + Send + Sync + 'static,
) -> Router
where
    F: Future<Output = Result<Option<Reply>, Failure>> + Send + 'static,
{
    let effects = effects.clone();
    let handler = async move |payment: Idempotent<Pay>| -> Response {
        let work = move |payment: Pay, claim: idem_axum::Claim| {
            effects.happen();
            async move {
                claim.makes("payment", "1").await;
                if payment.account == "poor" {
                    return Ok(Reply::status(402).body("declined"));
                }
                Ok(Reply::status(201).header("location", "/secret").body("a secret"))
            }
        };
        payment.rebuilt_by(render).execute(work).await
    };
    let idem = idem(store).operation::<Pay>(|pay| pay.replay(Replay::Rebuilt { schema_version })).build().unwrap();
    Router::new().route("/pay", post(handler)).with_state(idem)
}

/// Such a service over a store of its own.
pub(crate) async fn rebuilding<F>(render: impl Fn(Made) -> F + Clone + Send + Sync + 'static) -> Server
where
    F: Future<Output = Result<Option<Reply>, Failure>> + Send + 'static,
{
    Server::start(router(MemoryStore::new(), &Effects::default(), render)).await
}

#[tokio::test]
async fn a_second_request_gets_the_resource_of_today_with_the_status_of_then() {
    let (store, effects, day) = (MemoryStore::new(), Effects::default(), Arc::new(AtomicU32::new(1)));
    let today = Arc::clone(&day);
    let render = move |made: Made| {
        let resource = Some(ResourceRef { kind: "payment".into(), id: "1".into() });
        assert_eq!((made.status, made.resource, made.schema_version), (201, resource, 3));
        let body = format!("day {}", today.load(Ordering::SeqCst));
        async { Ok(Some(Reply::status(200).header("etag", "\"2\"").body(body))) }
    };
    let server = Server::start(router(store.clone(), &effects, render)).await;
    let first = server.pay("k").await;
    assert_eq!(
        (first.status, first.body.as_slice(), first.header("location")),
        (201, &b"a secret"[..], Some("/secret"))
    );
    for today in 1..3 {
        day.store(today, Ordering::SeqCst);
        let again = server.pay("k").await;
        assert_eq!((again.status, again.replayed()), (201, true));
        assert_eq!(again.body, format!("day {today}").as_bytes());
        assert_eq!((again.header("etag"), again.header("location")), (Some("\"2\""), None));
        assert_eq!(again.header("idempotency-expires"), first.header("idempotency-expires"));
        assert_eq!(again.header("idem-response-schema"), None);
    }
    assert_eq!(effects.count(), 1);
    let Status::Completed(finished) = record(&store, "k").unwrap().status else { panic!("it is not completed") };
    assert_eq!((finished.response.status, finished.response.body), (201, None));
    assert_eq!(finished.response.headers.len(), 1, "nothing but the version: {:?}", finished.response.headers);
    // Another command under the key is none that anything is rendered for.
    assert_eq!(server.post("/pay", "k", json!({ "account": "x", "cents": 1 })).await.status, 409);
}

#[tokio::test]
async fn a_version_that_is_no_longer_spoken_is_pointed_to_and_not_run_again() {
    let server = rebuilding(async |_| Ok(None)).await;
    server.pay("k").await;
    let refused = server.pay("k").await;
    assert_eq!((refused.status, refused.code()), (409, "IDEMPOTENCY_RESPONSE_NOT_KEPT".to_owned()));
    assert_eq!(refused.json()["resource"], json!({ "type": "payment", "id": "1" }));
}

/// Three releases over one store: what an answer was made as is known, so that each speaks what it can.
#[tokio::test]
async fn a_release_is_told_in_which_version_an_answer_was_made_and_refuses_one_that_it_no_longer_speaks() {
    fn speaking(versions: std::ops::RangeInclusive<u32>) -> impl Fn(Made) -> std::future::Ready<Rendered> + Clone {
        move |made| {
            let body = versions.contains(&made.schema_version).then(|| format!("as version {}", made.schema_version));
            std::future::ready(Ok(body.map(|body| Reply::status(200).body(body))))
        }
    }
    type Rendered = Result<Option<Reply>, Failure>;

    let (store, effects) = (MemoryStore::new(), Effects::default());
    let first = Server::start(versioned(1, store.clone(), &effects, speaking(1..=1))).await;
    let second = Server::start(versioned(2, store.clone(), &effects, speaking(1..=2))).await;
    let third = Server::start(versioned(3, store, &effects, speaking(2..=3))).await;
    for (server, key) in [(&first, "one"), (&second, "two"), (&third, "three")] {
        assert_eq!(server.pay(key).await.body, b"a secret");
    }
    for (server, key, body) in [
        (&first, "one", Some("as version 1")),
        (&first, "two", None),
        (&second, "one", Some("as version 1")),
        (&second, "two", Some("as version 2")),
        (&second, "three", None),
        (&third, "one", None),
        (&third, "two", Some("as version 2")),
        (&third, "three", Some("as version 3")),
    ] {
        let answer = server.pay(key).await;
        match body {
            Some(body) => {
                assert_eq!((answer.status, answer.replayed()), (201, true), "{key}");
                assert_eq!(answer.body, body.as_bytes());
            }
            None => {
                assert_eq!((answer.status, answer.code().as_str()), (409, "IDEMPOTENCY_RESPONSE_NOT_KEPT"), "{key}")
            }
        }
    }
    assert_eq!(effects.count(), 3);
}

#[tokio::test]
async fn a_refusal_is_kept_as_it_is_since_it_has_no_resource() {
    let server = rebuilding(async |_| panic!("a refusal was rendered")).await;
    let poor = json!({ "account": "poor", "cents": 1 });
    let first = server.post("/pay", "k", poor.clone()).await;
    let second = server.post("/pay", "k", poor).await;
    assert_eq!((second.status, second.replayed(), &second.body), (402, true, &first.body));
}

#[tokio::test]
async fn an_operation_that_keeps_answers_again_points_to_what_it_cannot_write() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    Server::start(router(store.clone(), &effects, async |_| Ok(None))).await.pay("k").await;
    let plain = crate::http::bench::pay(idem(store.clone()).build().unwrap(), async |_, _| Ok(StatusCode::CREATED));
    let server = Server::start(plain).await;
    let answer = server.pay("k").await;
    assert_eq!(answer.code(), "IDEMPOTENCY_RESPONSE_NOT_KEPT");
    assert_eq!(answer.json()["resource"]["id"], "1");
    // And the other way round: what was stored is given as it was stored.
    server.pay("stored").await;
    let server = Server::start(router(store, &effects, async |_| panic!("it was stored"))).await;
    assert!(server.post("/pay", "stored", payment()).await.replayed());
}

#[tokio::test]
async fn a_renderer_that_panics_has_the_client_ask_again() {
    let server = rebuilding(async |_| panic!("on purpose")).await;
    server.pay("k").await;
    let again = server.pay("k").await;
    assert_eq!((again.status, again.code().as_str()), (503, "IDEMPOTENCY_RESPONSE_NOT_RENDERED"));
}

/// Its answers would be stored, secrets and all, and never be written anew.
#[tokio::test]
async fn a_renderer_of_an_operation_that_stores_its_answers_is_refused_before_anything_is_kept() {
    let store = MemoryStore::new();
    let answer = Server::start(misdeclared(store.clone())).await.pay("k").await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "IDEMPOTENCY_SETUP_WRONG"));
    assert!(store.is_empty());
}

/// A handler with a renderer, over an operation that was not set up for one.
pub(crate) fn misdeclared(store: MemoryStore) -> Router {
    let handler = async move |payment: Idempotent<Pay>| -> Response {
        payment.rebuilt_by(async |_| Ok(None::<Reply>)).execute(async |_, _| Ok("it ran")).await
    };
    Router::new().route("/pay", post(handler)).with_state(idem(store).build().unwrap())
}

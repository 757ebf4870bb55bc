//! Reading the request: as axum does it, and without using up the key.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Form, Json, Router};
use idem_axum::{CommandFrom, Idem, MemoryStore};
use serde_json::{Value, json};

use crate::http::bench::{Answer, Effects, Server, idem, pay, payment, route};
use crate::http::command::{Cancel, Pay};

async fn send(server: &Server, path: &str, content_type: Option<&str>, body: impl Into<reqwest::Body>) -> Answer {
    let mut request = server.request(path).header("idempotency-key", "k").body(body);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    server.send(request).await
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_the_key() {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async { Ok(StatusCode::CREATED) }
    };
    let server = Server::start(pay(idem(store.clone()).build().unwrap(), work)).await;
    let json = Some("application/json");
    assert_eq!(send(&server, "/pay", Some("text/plain"), payment().to_string()).await.status, 415);
    assert_eq!(send(&server, "/pay", json, "{\"account\":").await.status, 400);
    let wrong = json!({ "account": "acc_1", "cents": "abc" }).to_string();
    assert_eq!(send(&server, "/pay", json, wrong).await.status, 422);
    assert_eq!((effects.count(), store.len()), (0, 0));
    assert_eq!(server.pay("k").await.status, 201);
    // After success, too: a replay is not given to a request that could not be read.
    let again = send(&server, "/pay", Some("text/plain"), payment().to_string()).await;
    assert_eq!((again.status, again.replayed()), (415, false));
    assert_eq!((effects.count(), store.len()), (1, 1));
}

#[tokio::test]
async fn refusals_have_the_status_and_the_words_of_axums_json() {
    let plain = Router::new().route("/json", post(async |_: Json<Pay>| StatusCode::OK));
    let idem = idem(MemoryStore::new()).build().unwrap();
    let server = Server::start(pay(idem, async |_, _| Ok(StatusCode::OK)).merge(plain)).await;
    let good = payment().to_string();
    for (content_type, body, status) in [
        (None, good.as_str(), 415),
        (Some("application/vnd.x+json; charset=utf-8"), good.as_str(), 200),
        (Some("application/json"), "{", 400),
        (Some("application/json"), "", 400),
        (Some("application/json"), r#"{"account":"a","cents":true}"#, 422),
        (Some("application/json"), r#"{"account":"a","account":"a","cents":1}"#, 422),
    ] {
        let axums = send(&server, "/json", content_type, body.to_owned()).await;
        let ours = send(&server, "/pay", content_type, body.to_owned()).await;
        assert_eq!((axums.status, ours.status), (status, status), "{body}");
        if status != 200 {
            assert_eq!(ours.code(), "IDEMPOTENCY_REQUEST_INVALID");
            assert_eq!(ours.json()["detail"].as_str().unwrap().as_bytes(), axums.body, "{body}");
            assert_eq!(ours.json()["status"], status);
        }
    }
}

#[tokio::test]
async fn the_key_is_asked_for_before_the_body_is_read() {
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), async |_, _| Ok(()))).await;
    let keyless = server.send(server.request("/pay").body("{")).await;
    assert_eq!((keyless.status, keyless.code()), (400, "IDEMPOTENCY_KEY_MISSING".to_owned()));
}

#[tokio::test]
async fn body_limits_are_those_of_the_router() {
    fn router(store: &MemoryStore) -> Router {
        pay(idem(store.clone()).build().unwrap(), async |_, _| Ok(StatusCode::OK))
    }
    fn oversized() -> String {
        let shell = json!({ "account": "", "cents": 1 }).to_string().len();
        json!({ "account": "a".repeat(2 * 1024 * 1024 + 1 - shell), "cents": 1 }).to_string()
    }
    fn chunked() -> reqwest::Body {
        let chunks: Vec<_> = oversized().as_bytes().chunks(64 * 1024).map(Bytes::copy_from_slice).collect();
        let frames = chunks.into_iter().map(|chunk| Ok::<_, Infallible>(http_body::Frame::data(chunk)));
        reqwest::Body::wrap(http_body_util::StreamBody::new(futures_util::stream::iter(frames)))
    }

    let store = MemoryStore::new();
    let json = Some("application/json");
    let server = Server::start(router(&store)).await;
    for body in [oversized().into(), chunked()] {
        let answer = send(&server, "/pay", json, body).await;
        assert_eq!((answer.status, answer.code()), (413, "IDEMPOTENCY_REQUEST_INVALID".to_owned()));
    }
    assert!(store.is_empty());
    assert_eq!(server.pay("k").await.status, 200);

    for limit in [DefaultBodyLimit::max(4 * 1024 * 1024), DefaultBodyLimit::disable()] {
        let server = Server::start(router(&MemoryStore::new()).layer(limit)).await;
        assert_eq!(send(&server, "/pay", json, oversized()).await.status, 200);
        assert!(send(&server, "/pay", json, chunked()).await.replayed());
    }
}

#[tokio::test]
async fn a_form_is_read_as_axum_reads_it() {
    let routes = route::<Pay, Form<Pay>, _, _, _>("/form", async |pay: Pay, _| Ok(pay.account));
    let server = Server::start(routes.with_state(idem(MemoryStore::new()).build().unwrap())).await;
    let form = Some("application/x-www-form-urlencoded");
    let refused = send(&server, "/form", Some("application/json"), payment().to_string()).await;
    assert_eq!((refused.status, refused.code()), (415, "IDEMPOTENCY_REQUEST_INVALID".to_owned()));
    assert_eq!(send(&server, "/form", form, "account=acc_1&cents=x").await.status, 422);
    assert_eq!(send(&server, "/form", form, "account=acc_1&cents=1").await.body, b"acc_1");
    assert!(send(&server, "/form", form, "cents=1&account=acc_1").await.replayed());
}

impl CommandFrom<(Path<(String, u64)>, Bytes)> for Cancel {
    type Refusal = (StatusCode, &'static str);

    fn command_from((Path((branch, order)), _): (Path<(String, u64)>, Bytes)) -> Result<Self, Self::Refusal> {
        if order == 0 {
            return Err((StatusCode::NOT_FOUND, "no order is called 0"));
        }
        Ok(Self { branch, order })
    }
}

#[tokio::test]
async fn an_operation_without_a_body_takes_its_command_from_the_path() {
    let store = MemoryStore::new();
    let routes =
        route::<Cancel, (Path<(String, u64)>, Bytes), _, _, _>("/{branch}/{order}/cancel", async |order: Cancel, _| {
            Ok(format!("{} {}", order.branch, order.order))
        });
    let idem: Idem = idem(store.clone()).build().unwrap();
    let server = Server::start(Router::new().nest("/v1", routes.with_state(idem))).await;
    let refused = send(&server, "/v1/b1/seven/cancel", None, "").await;
    assert_eq!((refused.status, refused.code()), (400, "IDEMPOTENCY_REQUEST_INVALID".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().starts_with("Invalid URL"), "{refused:?}");
    let own = send(&server, "/v1/b1/0/cancel", None, "").await;
    assert_eq!((own.status, own.body.as_slice()), (404, &b"no order is called 0"[..]));
    assert!(store.is_empty());
    assert_eq!(send(&server, "/v1/b1/7/cancel", None, "").await.body, b"b1 7");
    assert!(send(&server, "/v1/b1/7/cancel", None, "").await.replayed());
    // What the path says is part of the command.
    for other in ["/v1/b2/7/cancel", "/v1/b1/8/cancel"] {
        assert_eq!(send(&server, other, None, "").await.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST");
    }
}

/// An application's own way to read a body, with words of its own.
struct Strict(Pay);

struct NotStrict;

impl IntoResponse for NotStrict {
    fn into_response(self) -> Response {
        (StatusCode::IM_A_TEAPOT, [("x-own", "1")], "not like this").into_response()
    }
}

impl<S: Send + Sync> FromRequest<S> for Strict {
    type Rejection = NotStrict;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, NotStrict> {
        let Json(value) = Json::<Value>::from_request(request, state).await.map_err(|_| NotStrict)?;
        serde_json::from_value(value).map(Self).map_err(|_| NotStrict)
    }
}

impl CommandFrom<Strict> for Pay {
    type Refusal = Infallible;

    fn command_from(Strict(pay): Strict) -> Result<Self, Infallible> {
        Ok(pay)
    }
}

#[tokio::test]
async fn an_extractor_of_the_application_keeps_its_own_refusal() {
    let routes = route::<Pay, Strict, _, _, _>("/strict", async |_, _| Ok(StatusCode::CREATED));
    let server = Server::start(routes.with_state(idem(MemoryStore::new()).build().unwrap())).await;
    let refused = server.post("/strict", "k", json!({ "cents": 1 })).await;
    assert_eq!((refused.status, refused.body.as_slice()), (418, &b"not like this"[..]));
    assert_eq!(refused.header("x-own"), Some("1"));
    assert_eq!(server.post("/strict", "k", payment()).await.status, 201);
}

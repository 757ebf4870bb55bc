//! Clients that go away, and layers that give up: neither cancels what was claimed.

use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use idem_axum::MemoryStore;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;
use tower_http::timeout::TimeoutLayer;

use crate::http::bench::{Effects, Server, idem, pay, payment, settled};

/// Does its effect, and takes its time to answer.
fn slow(effects: &Effects) -> Router {
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async {
            sleep(Duration::from_millis(400)).await;
            Ok((StatusCode::CREATED, Json(json!({ "id": "pay_1" }))))
        }
    };
    pay(idem(MemoryStore::new()).build().unwrap(), work)
}

async fn replays_after(gone: impl AsyncFnOnce(tokio::net::TcpStream)) {
    let effects = Effects::default();
    let server = Server::start(slow(&effects)).await;
    let stream = server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(effects.count(), 1, "the client left before the work began");
    gone(stream).await;
    sleep(Duration::from_millis(100)).await;
    let meanwhile = server.pay("k").await;
    assert_eq!((meanwhile.status, meanwhile.code()), (409, "IDEMPOTENCY_REQUEST_IN_PROGRESS".to_owned()));
    let after = settled(&server, "k").await;
    assert_eq!((after.status, after.replayed()), (201, true));
    assert_eq!(after.json(), json!({ "id": "pay_1" }));
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_client_that_closes_cancels_nothing() {
    replays_after(async |stream| drop(stream)).await;
}

#[tokio::test]
async fn a_client_that_resets_cancels_nothing() {
    replays_after(async |stream| {
        stream.set_zero_linger().unwrap();
        drop(stream);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_closes_its_half_cancels_nothing() {
    let kept = std::sync::Mutex::new(None);
    replays_after(async |mut stream: tokio::net::TcpStream| {
        stream.shutdown().await.unwrap();
        *kept.lock().unwrap() = Some(stream);
    })
    .await;
}

#[tokio::test]
async fn a_time_out_around_the_handler_cancels_nothing_and_is_not_stored() {
    let effects = Effects::default();
    let layer = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(100));
    let server = Server::start(slow(&effects).layer(layer)).await;
    assert_eq!(server.pay("k").await.status, 504);
    let after = settled(&server, "k").await;
    assert_eq!((after.status, after.replayed()), (201, true));
    assert_eq!(effects.count(), 1);
}

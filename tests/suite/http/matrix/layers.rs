//! What layers and routers around a handler do to its requests.

use std::io::{Read, Write};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::get;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use reqwest::{Client, RequestBuilder};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::decompression::RequestDecompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

use crate::http::bench::payment;
use crate::http::held::Held;
use crate::http::matrix::Row;

/// What stands around the handler, and what is sent.
struct Around {
    name: &'static str,
    layer: fn(Router) -> Router,
    requests: &'static [Sent],
    /// Whether the work is let go only after the first answer.
    held: bool,
}

#[derive(Debug, Clone, Copy)]
enum Sent {
    Pay,
    Under(&'static str),
    Gzipped,
    AskingForGzip,
    Preflight,
    Get,
    Head,
}

const COMPRESSES: &str = "A layer that compresses";

const TIME_OUT: (StatusCode, Duration) = (StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(100));

fn arounds() -> Vec<Around> {
    let row = |name, layer, requests| Around { name, layer, requests, held: false };
    let held = |name, layer, requests| Around { held: true, ..row(name, layer, requests) };
    use Sent::{AskingForGzip, Get, Gzipped, Head, Pay, Preflight, Under};
    vec![
        row("Nothing around the handler", |router| router, &[Pay, Pay]),
        held(
            "A time-out around the router",
            |router| router.layer(TimeoutLayer::with_status_code(TIME_OUT.0, TIME_OUT.1)),
            &[Pay, Pay],
        ),
        held(
            "A time-out around the route only",
            |router| router.route_layer(TimeoutLayer::with_status_code(TIME_OUT.0, TIME_OUT.1)),
            &[Pay, Pay],
        ),
        row(
            "A layer that catches panics, around one that panics after the answer",
            |router| {
                let breaks = from_fn(async |request, next: Next| {
                    let answer = next.run(request).await;
                    assert!(answer.headers().contains_key("idempotency-replayed"), "a panic after the work");
                    answer
                });
                router.layer(breaks).layer(CatchPanicLayer::new())
            },
            &[Pay, Pay],
        ),
        row(COMPRESSES, |router| router.layer(CompressionLayer::new()), &[AskingForGzip, Pay, AskingForGzip]),
        row(
            "A layer that decompresses",
            |router| router.layer(RequestDecompressionLayer::new()),
            &[Gzipped, Pay, Gzipped],
        ),
        row("Nothing that decompresses", |router| router, &[Gzipped]),
        row("axum's body limit", |router| router.layer(DefaultBodyLimit::max(9)), &[Pay]),
        row("tower's body limit", |router| router.layer(RequestBodyLimitLayer::new(9)), &[Pay]),
        row("A preflight", |router| router.layer(CorsLayer::permissive()), &[Preflight, Pay, Preflight, Pay]),
        row(
            "Nested routers, the same service at two places",
            |router| Router::new().nest("/v1", router.clone()).nest("/v2/{any}", router),
            &[Under("/v1"), Under("/v2/x"), Under("/v3")],
        ),
        row(
            "A merged router",
            |router| Router::new().route("/other", get(async || "other")).merge(router),
            &[Pay, Pay],
        ),
        row(
            "`GET` and `HEAD` on the same path",
            |router| router.route("/pay", get(async || "a list")),
            &[Get, Head, Pay, Get, Head, Pay],
        ),
        row("No `GET` on the path", |router| router, &[Get, Head, Pay]),
        row(
            "A layer that refuses before the handler",
            |router| {
                router.layer(from_fn(async |request: Request, next: Next| {
                    match request.headers().contains_key("accept-encoding") {
                        true => next.run(request).await,
                        false => StatusCode::TOO_MANY_REQUESTS.into_response(),
                    }
                }))
            },
            &[Pay, AskingForGzip],
        ),
    ]
}

pub(super) async fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for around in arounds() {
        for http in [1, 2] {
            let client = Client::builder();
            let client = if http == 2 { client.http2_prior_knowledge() } else { client.http1_only() };
            rows.push(seen(&client.build().unwrap(), &around, http).await);
        }
    }
    rows
}

async fn seen(client: &Client, around: &Around, http: u8) -> Row {
    let name = around.name;
    let service = Held::with(around.layer).await;
    if !around.held {
        service.go.add_permits(1);
    }
    let base = format!("http://{}", service.server.address);
    let mut answers = Vec::new();
    for &sent in around.requests {
        let answer = request(client, &base, sent).send().await.unwrap();
        let replayed = answer.headers().contains_key("idempotency-replayed");
        let version = if http == 2 { reqwest::Version::HTTP_2 } else { reqwest::Version::HTTP_11 };
        assert_eq!(answer.version(), version, "{name}");
        let status = answer.status().as_u16();
        answers.push(super::answer(status, replayed));
        let packed = answer.headers().get("content-encoding").is_some_and(|is| is == "gzip");
        let body = answer.bytes().await.unwrap();
        if status == 201 {
            // Compressed for whom that was asked, stored as it was made.
            assert_eq!(packed, matches!(sent, Sent::AskingForGzip) && name == COMPRESSES, "{name}");
            let body = if packed { unpacked(&body) } else { body.to_vec() };
            assert!(body.len() == 200 * 1024 && body.iter().all(|&byte| byte == b'x'), "{name}");
        }
        if around.held && answers.len() == 1 {
            service.go.add_permits(1);
        }
        service.drained().await;
    }
    assert!(service.store.len() <= 1, "{name}");
    Row {
        case: name.to_owned(),
        http,
        answers: answers.join(", "),
        records: vec![service.state()],
        runs: vec![service.begun.count()],
    }
}

fn request(client: &Client, base: &str, sent: Sent) -> RequestBuilder {
    let path = if let Sent::Under(prefix) = sent { format!("{base}{prefix}/pay") } else { format!("{base}/pay") };
    let post = client.post(&path).header("idempotency-key", "k");
    match sent {
        Sent::Pay | Sent::Under(_) => post.json(&payment()),
        Sent::AskingForGzip => post.json(&payment()).header("accept-encoding", "gzip"),
        Sent::Gzipped => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(payment().to_string().as_bytes()).unwrap();
            let packed = packed.finish().unwrap();
            post.header("content-type", "application/json").header("content-encoding", "gzip").body(packed)
        }
        Sent::Preflight => client
            .request(Method::OPTIONS, &path)
            .header("origin", "https://shop.example")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "idempotency-key,content-type"),
        Sent::Get => client.get(&path).header("idempotency-key", "k"),
        Sent::Head => client.head(&path).header("idempotency-key", "k"),
    }
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut body).unwrap();
    body
}

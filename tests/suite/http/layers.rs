//! What layers and routers around a handler do to its requests, on HTTP/1.1 and HTTP/2: one table.

use std::io::{Read, Write};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn;
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

use crate::http::bench::{payment, record};
use crate::http::hangup::Held;

/// One row: what stands around the handler, what is sent, and what comes of it.
struct Row {
    name: &'static str,
    layer: fn(Router) -> Router,
    requests: &'static [Sent],
    /// The status of each answer; negative for a replay.
    statuses: &'static [i32],
    state: &'static str,
    effects: usize,
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

const TIME_OUT: (StatusCode, Duration) = (StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(100));

fn rows() -> Vec<Row> {
    let row = |name, layer, requests, statuses, state, effects| Row {
        name,
        layer,
        requests,
        statuses,
        state,
        effects,
        held: false,
    };
    use Sent::{AskingForGzip, Get, Gzipped, Head, Pay, Preflight, Under};
    vec![
        row("nothing", |router| router, &[Pay, Pay], &[201, -201], "completed", 1),
        Row {
            held: true,
            ..row(
                "a time-out around the router",
                |router| router.layer(TimeoutLayer::with_status_code(TIME_OUT.0, TIME_OUT.1)),
                &[Pay, Pay],
                &[504, -201],
                "completed",
                1,
            )
        },
        Row {
            held: true,
            ..row(
                "a time-out around the route only",
                |router| router.route_layer(TimeoutLayer::with_status_code(TIME_OUT.0, TIME_OUT.1)),
                &[Pay, Pay],
                &[504, -201],
                "completed",
                1,
            )
        },
        row(
            "a layer that catches panics, around one that panics after the answer",
            |router| {
                let breaks = from_fn(async |request, next: axum::middleware::Next| {
                    let answer = next.run(request).await;
                    assert!(answer.headers().contains_key("idempotency-replayed"), "a panic after the work");
                    answer
                });
                router.layer(breaks).layer(CatchPanicLayer::new())
            },
            &[Pay, Pay],
            &[500, -201],
            "completed",
            1,
        ),
        row(
            "a layer that compresses",
            |router| router.layer(CompressionLayer::new()),
            &[AskingForGzip, Pay, AskingForGzip],
            &[201, -201, -201],
            "completed",
            1,
        ),
        row(
            "a layer that decompresses",
            |router| router.layer(RequestDecompressionLayer::new()),
            &[Gzipped, Pay, Gzipped],
            &[201, -201, -201],
            "completed",
            1,
        ),
        row("nothing that decompresses", |router| router, &[Gzipped], &[400], "none", 0),
        row("axum's body limit", |router| router.layer(DefaultBodyLimit::max(9)), &[Pay], &[413], "none", 0),
        row("tower's body limit", |router| router.layer(RequestBodyLimitLayer::new(9)), &[Pay], &[413], "none", 0),
        row(
            "a preflight",
            |router| router.layer(CorsLayer::permissive()),
            &[Preflight, Pay, Preflight, Pay],
            &[200, 201, 200, -201],
            "completed",
            1,
        ),
        row(
            "nested routers, the same service at two places",
            |router| Router::new().nest("/v1", router.clone()).nest("/v2/{any}", router),
            &[Under("/v1"), Under("/v2/x"), Under("/v3")],
            &[201, -201, 404],
            "completed",
            1,
        ),
        row(
            "a merged router",
            |router| Router::new().route("/other", get(async || "other")).merge(router),
            &[Pay, Pay],
            &[201, -201],
            "completed",
            1,
        ),
        row(
            "GET and HEAD on the same path",
            |router| router.route("/pay", get(async || "a list")),
            &[Get, Head, Pay, Get, Head, Pay],
            &[200, 200, 201, 200, 200, -201],
            "completed",
            1,
        ),
        row("no GET on the path", |router| router, &[Get, Head, Pay], &[405, 405, 201], "completed", 1),
        row(
            "a layer that refuses before the handler",
            |router| {
                router.layer(from_fn(
                    async |request: axum::extract::Request, next: axum::middleware::Next| match request
                        .headers()
                        .contains_key("accept-encoding")
                    {
                        true => next.run(request).await,
                        false => StatusCode::TOO_MANY_REQUESTS.into_response(),
                    },
                ))
            },
            &[Pay, AskingForGzip],
            &[429, 201],
            "completed",
            1,
        ),
    ]
}

#[tokio::test]
async fn layers_and_routers_change_neither_the_record_nor_the_effects_on_http_1_and_2() {
    for protocol in [1, 2] {
        let client = Client::builder();
        let client = if protocol == 2 { client.http2_prior_knowledge() } else { client.http1_only() };
        let client = client.build().unwrap();
        for row in rows() {
            run(&client, row, protocol).await;
        }
    }
}

async fn run(client: &Client, row: Row, protocol: u8) {
    let name = format!("{} on HTTP/{protocol}", row.name);
    let service = Held::with(row.layer).await;
    if !row.held {
        service.go.add_permits(1);
    }
    let base = format!("http://{}", service.server.address);
    let mut statuses = Vec::new();
    for &sent in row.requests {
        let answer = request(client, &base, sent).send().await.unwrap();
        let replayed = answer.headers().contains_key("idempotency-replayed");
        let version = if protocol == 2 { reqwest::Version::HTTP_2 } else { reqwest::Version::HTTP_11 };
        assert_eq!(answer.version(), version, "{name}");
        let status = i32::from(answer.status().as_u16());
        statuses.push(if replayed { -status } else { status });
        let packed = answer.headers().get("content-encoding").is_some_and(|is| is == "gzip");
        let body = answer.bytes().await.unwrap();
        if status == 201 {
            // Compressed for whom that was asked, stored as it was made.
            assert_eq!(packed, matches!(sent, Sent::AskingForGzip) && row.name == "a layer that compresses", "{name}");
            let body = if packed { unpacked(&body) } else { body.to_vec() };
            assert!(body.len() == 200 * 1024 && body.iter().all(|&byte| byte == b'x'), "{name}");
        }
        if row.held && statuses.len() == 1 {
            service.go.add_permits(1);
        }
        service.drained().await;
    }
    assert_eq!(statuses, row.statuses, "{name}");
    let state = record(&service.store, "k").map_or("none", |record| record.status.name().as_str());
    assert_eq!((state, service.begun.count()), (row.state, row.effects), "{name}");
    assert!(service.store.len() <= 1, "{name}");
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

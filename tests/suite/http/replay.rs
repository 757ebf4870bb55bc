//! The first answer and the same answer again.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, Html, NoContent, Redirect};
use axum::{Form, Json};
use idem_axum::{Failure, IntoReply, MemoryStore, Reply};
use serde_json::json;

use crate::http::bench::{Answer, Server, idem, pay, record};

/// The first answer and the second, of a service whose work answers so.
async fn twice<T: IntoReply + 'static>(answer: fn() -> T) -> (Answer, Answer) {
    let work = move |_, _| async move { Ok(answer()) };
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
    let (first, second) = (server.pay("k").await, server.pay("k").await);
    assert!(!first.replayed() && second.replayed(), "{first:?} {second:?}");
    (first, second)
}

#[tokio::test]
async fn the_first_client_gets_every_header_and_a_replay_only_what_describes_the_answer() {
    let store = MemoryStore::new();
    let work = async |_, _| {
        let headers = AppendHeaders([
            ("location", "/payments/1"),
            ("etag", "\"v1\""),
            ("cache-control", "private"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-request-id", "r-1"),
            ("www-authenticate", "Basic"),
            ("content-length", "9"),
            ("connection", "close"),
            ("x-rate", "7"),
        ]);
        let json = [("content-type", "application/problem+json; charset=utf-8")];
        Ok((StatusCode::CREATED, json, headers, "{\"id\":\"1\"}"))
    };
    let idem = idem(store.clone()).keep_header("X-Rate").build().unwrap();
    let server = Server::start(pay(idem, work)).await;
    let first = server.pay("k").await;
    let cookies: Vec<_> = first.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(first.header("x-request-id"), Some("r-1"));
    assert_eq!(first.header("www-authenticate"), Some("Basic"));
    // A length of the work's own would cut the answer off.
    assert_eq!(first.body, b"{\"id\":\"1\"}");

    let second = server.pay("k").await;
    assert_eq!((second.status, &second.body), (201, &first.body));
    assert_eq!(second.header("location"), Some("/payments/1"));
    assert_eq!(second.header("etag"), Some("\"v1\""));
    assert_eq!(second.header("x-rate"), Some("7"));
    assert_eq!(second.header("cache-control"), Some("private"));
    let types: Vec<_> = second.headers.get_all("content-type").iter().collect();
    assert_eq!(types, ["application/problem+json; charset=utf-8"]);
    for never in ["set-cookie", "x-request-id", "www-authenticate"] {
        assert_eq!(second.header(never), None, "{never}");
    }
    assert_ne!(second.header("date"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(second.header("content-length"), Some("10"));

    let finished = match record(&store, "k").unwrap().status {
        idem_core::Status::Completed(finished) => finished,
        other => panic!("{other:?}"),
    };
    let kept: Vec<_> = finished.response.headers.iter().map(|(name, _)| name.as_str()).collect();
    for never in ["set-cookie", "date", "x-request-id", "www-authenticate", "content-length", "connection"] {
        assert!(!kept.contains(&never), "{never} was stored");
    }
}

#[tokio::test]
async fn empty_answers_and_bytes_come_again_as_they_were() {
    let cases: [fn() -> Reply; 4] = [
        || Reply::status(204),
        || Reply::status(202),
        || Reply::status(200).header("content-type", "application/json").body("null"),
        || Reply::status(200).body([0x00, 0xFF, 0x7B]),
    ];
    let bodies: [&[u8]; 4] = [b"", b"", b"null", &[0x00, 0xFF, 0x7B]];
    for (case, body) in cases.into_iter().zip(bodies) {
        let (first, second) = twice(case).await;
        assert_eq!((first.status, first.body.as_slice()), (second.status, body));
        assert_eq!(second.body, body);
        assert_eq!(first.header("content-type"), second.header("content-type"));
        assert_eq!(second.header("content-type"), (body == b"null").then_some("application/json"));
        if second.status == 204 {
            assert_eq!((first.header("content-length"), second.header("content-length")), (None, None));
        }
    }
}

#[tokio::test]
async fn the_status_of_a_replay_is_the_first_ones() {
    let statuses: [fn() -> StatusCode; 7] = [
        || StatusCode::OK,
        || StatusCode::CREATED,
        || StatusCode::ACCEPTED,
        || StatusCode::NOT_ACCEPTABLE,
        || StatusCode::CONFLICT,
        || StatusCode::UNPROCESSABLE_ENTITY,
        || StatusCode::from_u16(299).unwrap(),
    ];
    for status in statuses {
        let (first, second) = twice(status).await;
        assert_eq!((first.status, second.status), (status().as_u16(), status().as_u16()));
    }
}

#[tokio::test]
async fn both_answers_say_when_the_replay_window_ends() {
    let (first, second) = twice(|| StatusCode::CREATED).await;
    assert_eq!(first.header("idempotency-expires"), second.header("idempotency-expires"));
    let expires = httpdate::parse_http_date(first.header("idempotency-expires").unwrap()).unwrap();
    let left = expires.duration_since(SystemTime::now()).unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    assert!(left <= day && left > day - Duration::from_secs(60), "{left:?}");
}

#[tokio::test]
async fn answers_are_written_as_axum_writes_them() {
    use axum::response::IntoResponse;

    async fn same<T: IntoReply, R: IntoResponse>(ours: T, axums: R) {
        let reply = ours.into_reply().unwrap();
        let (parts, body) = axums.into_response().into_parts();
        assert_eq!(reply.status, parts.status.as_u16());
        let headers: Vec<_> =
            parts.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        assert_eq!(reply.headers, headers);
        assert_eq!(reply.body, axum::body::to_bytes(body, usize::MAX).await.unwrap());
    }

    same((), ()).await;
    same(StatusCode::GONE, StatusCode::GONE).await;
    same("text", "text").await;
    same(String::from("text"), String::from("text")).await;
    same(vec![1, 2], vec![1, 2]).await;
    same(&b"12"[..], &b"12"[..]).await;
    same(NoContent, NoContent).await;
    same(Redirect::to("/x"), Redirect::to("/x")).await;
    same(Json(json!({ "a": 1 })), Json(json!({ "a": 1 }))).await;
    same(Html("<p>"), Html("<p>")).await;
    same(Form([("a", "b c")]), Form([("a", "b c")])).await;
    same((StatusCode::CREATED, "x"), (StatusCode::CREATED, "x")).await;
    let header = || [(header::LOCATION, "/x")];
    same((header(), "x"), (header(), "x")).await;
    same((StatusCode::CREATED, header(), Json(1)), (StatusCode::CREATED, header(), Json(1))).await;
    let map = || HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("a/b"))]);
    same((map(), "x"), (map(), "x")).await;
    let many = || (StatusCode::OK, header(), map(), AppendHeaders([("a", "1"), ("a", "2")]), [("b", "3")], "x");
    same(many(), many()).await;
    same(Err::<(), _>((StatusCode::CONFLICT, "no")), (StatusCode::CONFLICT, "no")).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_is_a_failed_attempt_and_no_success() {
    async fn fails<T: IntoReply + 'static>(answer: fn() -> T) {
        let work = move |_, _| async move { Ok(answer()) };
        let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
        let first = server.pay("k").await;
        assert_eq!((first.status, first.code()), (503, "IDEMPOTENCY_WORK_FAILED".to_owned()));
    }

    fails(|| (StatusCode::CREATED, Json(BTreeMap::from([((1, 2), 3)])))).await;
    fails(|| (StatusCode::CREATED, [("x y", "1")], "x")).await;
    fails(|| (StatusCode::CREATED, [("x", "1\n2")], "x")).await;
    fails(|| Reply::status(101)).await;
    fails(|| Reply::status(1000)).await;
    fails(|| Reply::status(200).header("x y", "1")).await;
}

#[tokio::test]
async fn a_failure_whose_answer_http_cannot_carry_does_not_break_the_connection() {
    let work = async |_, _| -> Result<(), Failure> { Err(Failure::replayable(Reply::status(1000).header("x y", "1"))) };
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await;
    for _ in 0..2 {
        assert_eq!(server.pay("k").await.code(), "IDEMPOTENCY_RESPONSE_NOT_KEPT");
    }
}

//! Answers: the second one is the first one, byte by byte.

use crate::record::{Status, StoredResponse};
use crate::store::{End, Store};
use crate::testing::{Case, KEEP, answer};

/// What a body contains is nobody's business but the application's.
pub async fn bodies_are_kept_byte_by_byte(store: &dyn Store) {
    let every: Vec<u8> = (0..=255).collect();
    let bodies = [
        Vec::new(),
        b"\0".to_vec(),
        b"a\0b\0".to_vec(),
        b"\xff\xfe\xc3\x28".to_vec(),
        br#"{"b":1,"a":2,"n":1e2}"#.to_vec(),
        br#"{"a":1,"a":2, "u":"\u0000"}"#.to_vec(),
        b" \r\n\n ".to_vec(),
        "\u{feff}\u{1f4b6} e\u{301}".into(),
        every.repeat(256),
    ];
    for body in bodies {
        assert_eq!(kept(store, answer(body.clone())).await.body, Some(body));
    }
}

/// A body that was too large to keep is not one of no bytes.
pub async fn no_body_is_not_an_empty_body(store: &dyn Store) {
    for body in [None, Some(Vec::new())] {
        assert_eq!(kept(store, StoredResponse { body: body.clone(), ..answer("") }).await.body, body);
    }
}

/// Order, doubled names, empty values, and every byte that a header value may have.
pub async fn headers_are_kept_byte_by_byte(store: &dyn Store) {
    let odd: Vec<u8> = std::iter::once(b'\t').chain(0x20..=0x7e).chain(0x80..=0xff).collect();
    let headers: Vec<(String, Vec<u8>)> = vec![
        ("location".into(), b"/payments/1?a: b".to_vec()),
        ("x-odd".into(), odd),
        ("link".into(), b"<a>".to_vec()),
        ("etag".into(), Vec::new()),
        ("link".into(), b": b:".to_vec()),
    ];
    for headers in [headers, Vec::new()] {
        assert_eq!(kept(store, StoredResponse { headers: headers.clone(), ..answer("") }).await.headers, headers);
    }
}

/// Also those that no list has.
pub async fn every_status_code_is_kept(store: &dyn Store) {
    for status in [100, 200, 201, 204, 299, 402, 422, 499, 599, 999, u16::MAX] {
        assert_eq!(kept(store, StoredResponse { status, ..answer("") }).await.status, status);
    }
}

/// The answer as a later request gets it, once completed and once refused for good.
async fn kept(store: &dyn Store, response: StoredResponse) -> StoredResponse {
    let refused = Case::new(store);
    refused.ended(End::FailedReplayable { response: response.clone(), keep: KEEP }).await;
    let case = Case::new(store);
    case.ended(End::Completed { response, keep: KEEP }).await;
    match (refused.record().await.status, case.record().await.status) {
        (Status::FailedReplayable(refused), Status::Completed(completed)) => {
            assert_eq!(refused.response, completed.response);
            completed.response
        }
        (_, other) => panic!("it is {}", other.name()),
    }
}

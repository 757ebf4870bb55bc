//! What each way in which a call over HTTP fails says of the call, against a server that fails in each.

use std::time::Duration;

use idem_core::provider::{Provider, ProviderError};
use idem_core::{CallError, Fate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the server does with its one connection, once it has the request.
#[derive(Clone)]
enum Does {
    Nothing,
    Cuts,
    Says(String),
}

/// A provider at an address where that happens.
async fn meets(does: Does) -> Result<Vec<u8>, ProviderError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"amount=5") {
            socket.read_buf(&mut request).await.unwrap();
        }
        match does {
            Does::Nothing => std::future::pending().await,
            Does::Cuts => {}
            Does::Says(text) => socket.write_all(text.as_bytes()).await.unwrap(),
        }
    });
    let sent = charge(&address.to_string()).await;
    server.abort();
    sent
}

async fn charge(address: &str) -> Result<Vec<u8>, ProviderError> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500));
    let provider = Provider::new(client, |answer| answer.body == b"key conflict").unwrap();
    let request = provider.client().post(format!("http://{address}/charges")).body("amount=5");
    Ok(provider.send(request).await?.body)
}

fn answer(head: &str, body: &str) -> Does {
    let length = body.len();
    Does::Says(format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"))
}

async fn fate(does: Does) -> Fate {
    meets(does).await.unwrap_err().fate()
}

#[tokio::test]
async fn a_success_brings_its_body() {
    assert_eq!(meets(answer("201 Created", "receipt")).await.unwrap(), b"receipt");
}

#[tokio::test]
async fn what_found_no_connection_never_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    for address in [nobody.as_str(), "no such host"] {
        let error = charge(address).await.unwrap_err();
        assert_eq!((error.fate(), error.code()), (Fate::NeverLeft, "PROVIDER_NO_ANSWER"), "{address}: {error:?}");
    }
}

#[tokio::test]
async fn what_left_and_got_no_whole_answer_is_unknown() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nreceipt".to_owned();
    let half_a_refusal = "HTTP/1.1 422 No\r\ncontent-length: 100\r\n\r\nno".to_owned();
    for does in [Does::Nothing, Does::Cuts, Does::Says(half), Does::Says(half_a_refusal), Does::Says("HTT".to_owned())]
    {
        let error = meets(does).await.unwrap_err();
        assert!(matches!(error, ProviderError::NoAnswer { never_left: false, .. }), "{error:?}");
        assert_eq!(error.fate(), Fate::Unknown);
    }
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_unknown() {
    let unreadable = idem_core::provider::ProviderAnswer { status: 200, body: b"<html>".to_vec() };
    let error = unreadable.json::<u32>().unwrap_err();
    assert_eq!((error.fate(), error.code()), (Fate::Unknown, "PROVIDER_UNREADABLE"));
}

#[tokio::test]
async fn each_status_says_what_became_of_the_call() {
    for (statuses, expected) in [
        (&[401, 407, 425, 429][..], Fate::NeverLeft),
        (&[400, 402, 403, 404, 405, 410, 422, 451, 499], Fate::Refused),
        (&[300, 302, 304, 408, 409, 500, 502, 503, 504, 599], Fate::Unknown),
    ] {
        for status in statuses {
            let head = format!("{status} Said\r\nlocation: http://127.0.0.1:1/");
            let told = match status {
                304 => fate(Does::Says(format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n"))).await,
                _ => fate(answer(&head, "no")).await,
            };
            assert_eq!(told, expected, "{status}");
        }
    }
}

/// The first address had the request; that the second one refuses the connection says nothing of it.
#[tokio::test]
async fn a_redirect_to_nobody_is_unknown_and_not_followed() {
    for status in [301, 303, 307, 308] {
        let error =
            meets(answer(&format!("{status} Elsewhere\r\nlocation: http://127.0.0.1:1/"), "")).await.unwrap_err();
        let ProviderError::Answered { answer, fate, .. } = &error else { panic!("{error:?}") };
        assert_eq!((answer.status, *fate), (status, Fate::Unknown));
    }
}

/// "Same key, other parameters" says that there was a first call, not that nothing happened.
#[tokio::test]
async fn the_providers_own_key_conflict_is_unknown() {
    for head in ["400 Bad Request", "409 Conflict", "422 Unprocessable", "429 Slow Down"] {
        assert_eq!(fate(answer(head, "key conflict")).await, Fate::Unknown, "{head}");
    }
}

#[tokio::test]
async fn the_providers_retry_after_is_kept() {
    for (value, wait) in [("120", Some(120)), ("soon", None), ("Thu, 01 Jan 1970 00:00:00 GMT", None)] {
        let error = meets(answer(&format!("429 Slow Down\r\nretry-after: {value}"), "")).await.unwrap_err();
        assert_eq!(error.retry_after(), wait.map(Duration::from_secs), "{value}");
    }
    let far = meets(answer("503 Away\r\nretry-after: Tue, 31 Dec 2999 23:59:59 GMT", "")).await.unwrap_err();
    assert!(far.retry_after().unwrap() > Duration::from_secs(24 * 60 * 60));
}

//! The client of `docs/clients.md`, run against a service that makes it hard.

use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use idem_axum::{Failure, MemoryStore, Reply};

use crate::http::bench::{Effects, Server, idem, pay as service, payment};

// On the page as it stands here.
async fn pay(client: &reqwest::Client, url: &str, key: &str, payment: &serde_json::Value) -> Option<reqwest::Response> {
    for _ in 0..8 {
        let sent = client.post(url).header("idempotency-key", key).json(payment).send().await;
        let seconds = match sent {
            // Nobody knows whether it arrived: the same key, after a pause.
            Err(_) => 1,
            Ok(answer) => match answer.headers().get("retry-after").and_then(|wait| wait.to_str().ok()?.parse().ok()) {
                // Only where waiting helps is it told how long.
                Some(seconds) => seconds,
                // A proxy's word says nothing of the request behind it.
                None if matches!(answer.status().as_u16(), 502 | 504) => 1,
                None => return Some(answer),
            },
        };
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    }
    None // not known yet: keep the key, and go on with it later
}

#[tokio::test]
async fn the_client_of_the_page_gets_its_answer_through_a_lost_one_a_failure_and_a_bad_gateway() {
    let (arrived, effects) = (Effects::default(), Effects::default());
    let (arriving, happening) = (arrived.clone(), effects.clone());
    let unkind = from_fn(move |request, next: Next| {
        arriving.happen();
        let nth = arriving.count();
        async move {
            let answer = next.run(request).await;
            assert!(nth != 1, "the connection of the first request breaks after the work");
            if nth == 2 { axum::response::IntoResponse::into_response(StatusCode::BAD_GATEWAY) } else { answer }
        }
    });
    let work = move |_, _| {
        happening.happen();
        let run = happening.count();
        async move { if run == 1 { Err(Failure::retryable("away")) } else { Ok(Reply::status(201).body("paid")) } }
    };
    let server = Server::start(service(idem(MemoryStore::new()).build().unwrap(), work).layer(unkind)).await;
    let url = format!("http://{}/pay", server.address);
    let answer = pay(&reqwest::Client::new(), &url, "k", &payment()).await.unwrap();
    assert_eq!((answer.status().as_u16(), effects.count(), arrived.count()), (201, 2, 3));
    assert_eq!(answer.bytes().await.unwrap(), "paid");
}

#[test]
fn the_page_shows_this_client() {
    let (_, here) = include_str!("clients.rs").split_once("stands here.\n").unwrap();
    let function = here.split_once("\n}\n").unwrap().0;
    assert!(include_str!("../../../docs/clients.md").contains(function), "docs/clients.md differs:\n{function}");
}

//! Many identical requests at once.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::MemoryStore;
use tokio::sync::Barrier;
use tokio::time::sleep;

use crate::http::bench::{Effects, Server, idem, pay};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_requests_one_runs_and_none_sees_a_server_error() {
    let effects = Effects::default();
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async {
            sleep(Duration::from_millis(300)).await;
            Ok((StatusCode::CREATED, "paid"))
        }
    };
    let server = Arc::new(Server::start(pay(idem(MemoryStore::new()).build().unwrap(), work)).await);
    let start = Arc::new(Barrier::new(64));
    let clients: Vec<_> = (0..64)
        .map(|_| {
            let (server, start) = (Arc::clone(&server), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                server.pay("k").await
            })
        })
        .collect();
    let mut fresh = 0;
    for client in clients {
        let answer = client.await.unwrap();
        match (answer.status, answer.replayed(), answer.code().as_str()) {
            (201, false, "") => fresh += 1,
            (201, true, "") => assert_eq!(answer.body, b"paid"),
            (409, false, "IDEMPOTENCY_REQUEST_IN_PROGRESS") => assert!(answer.header("retry-after").is_some()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((fresh, effects.count()), (1, 1));
    assert!(server.pay("k").await.replayed());
}

//! Work that panics: it frees its key at once where nothing was announced, and the service goes on.

use axum::http::StatusCode;
use idem_axum::MemoryStore;
use tower_http::catch_panic::CatchPanicLayer;

use crate::http::bench::{Effects, Server, idem, pay, record};
use crate::http::matrix::Row;

pub(super) async fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (case, caught) in [("The work panics", false), ("The work panics under a layer that catches panics", true)] {
        for http in [1, 2] {
            rows.push(seen(case, caught, http).await);
        }
    }
    rows
}

async fn seen(case: &str, caught: bool, http: u8) -> Row {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        let run = happening.count();
        async move {
            assert!(run > 1, "the first run panics");
            Ok(StatusCode::CREATED)
        }
    };
    let router = pay(idem(store.clone()).build().unwrap(), work);
    let router = if caught { router.layer(CatchPanicLayer::new()) } else { router };
    let server = Server::start(router).await;
    let server = if http == 2 { server.over_http2() } else { server };
    let state = || record(&store, "k").unwrap().status.name().as_str();
    let first = server.pay("k").await;
    assert_eq!(first.code(), "IDEMPOTENCY_WORK_FAILED");
    let (panicked, runs) = (state(), effects.count());
    // Its own word of when.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let second = server.pay("k").await;
    Row {
        case: case.to_owned(),
        http,
        answers: [first, second].map(|given| super::answer(given.status, given.replayed())).join(", "),
        records: vec![panicked, state()],
        runs: vec![runs, effects.count()],
    }
}

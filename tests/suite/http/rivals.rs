//! Many identical requests at once, over every store.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::MemoryStore;
use idem_core::Store;
use idem_sqlx::{PgOptions, PgStore, SqliteOptions, SqliteStore};
use tokio::sync::{Barrier, Semaphore};

use crate::http::bench::{Effects, Server, idem, pay};
use idem_cluster::Cluster;

/// 64 clients send one request together, and the work does not end before each of the others has an answer or waits.
async fn race(store: impl Store + 'static) {
    let (effects, go) = (Effects::default(), Arc::new(Semaphore::new(0)));
    let (happening, gate) = (effects.clone(), Arc::clone(&go));
    let work = move |_, _| {
        happening.happen();
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok((StatusCode::CREATED, "paid"))
        }
    };
    let server = Arc::new(Server::start(pay(idem(store).build().unwrap(), work)).await);
    let (start, answered) = (Arc::new(Barrier::new(RIVALS)), Effects::default());
    let clients: Vec<_> = (0..RIVALS)
        .map(|_| {
            let (server, start, answered) = (Arc::clone(&server), Arc::clone(&start), answered.clone());
            tokio::spawn(async move {
                start.wait().await;
                let answer = server.pay("k").await;
                answered.happen();
                answer
            })
        })
        .collect();
    // Half of them while the work runs; the rest may meet its end.
    answered.reach(RIVALS / 2).await;
    go.add_permits(RIVALS);
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
    let after = server.pay("k").await;
    assert_eq!((after.status, after.replayed(), after.body.as_slice()), (201, true, &b"paid"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_requests_one_runs_and_none_sees_a_server_error() {
    race(MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_requests_over_sqlite_one_runs_and_none_sees_a_server_error() {
    let directory = tempfile::tempdir().unwrap();
    for readers in [None, Some(1)] {
        let options = SqliteOptions::new(directory.path().join(format!("idem-{readers:?}.db")));
        let options = match readers {
            // With the one that writes, two.
            Some(readers) => options.readers(readers),
            None => options,
        };
        race(SqliteStore::open(options.busy_timeout(LONG)).await.unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_requests_over_postgresql_one_runs_and_none_sees_a_server_error() {
    for connections in [None, Some(2)] {
        let database = Cluster::shared().database().await;
        let options = PgOptions::from(database.options());
        // A slow machine must not decide: nothing times out.
        let options = options.lock_timeout(LONG).statement_timeout(LONG).acquire_timeout(LONG);
        let options = connections.into_iter().fold(options, PgOptions::connections);
        let store = PgStore::open(options).await.unwrap();
        race(store.clone()).await;
        store.close().await;
    }
}

const RIVALS: usize = 64;
const LONG: Duration = Duration::from_secs(60);

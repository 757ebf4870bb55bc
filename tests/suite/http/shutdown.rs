//! The end of a process, with work whose client has gone.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::MemoryStore;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

use tokio::io::AsyncWriteExt;

use crate::http::bench::{Effects, idem, pay, payment, record};

/// Starts a service on a runtime of its own, abandons a request in the middle of its work, shuts the service down
/// gracefully, with or without waiting for what still runs, and ends the runtime. The record's state, and how often
/// the work has ended.
fn abandoned(drains: bool) -> (&'static str, usize) {
    let (store, begun, ended) = (MemoryStore::new(), Effects::default(), Effects::default());
    let go = Arc::new(Semaphore::new(0));
    let process = Runtime::new().unwrap();
    process.block_on(async {
        let (beginning, ending, gate) = (begun.clone(), ended.clone(), Arc::clone(&go));
        let work = move |_, _| {
            beginning.happen();
            let (ending, gate) = (ending.clone(), Arc::clone(&gate));
            async move {
                gate.acquire().await.unwrap().forget();
                ending.happen();
                Ok(StatusCode::CREATED)
            }
        };
        let idem = idem(store.clone()).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let server = axum::serve(listener, pay(idem.clone(), work)).with_graceful_shutdown(stopped);
        let server = tokio::spawn(server.into_future());
        let body = payment().to_string();
        let head = "POST /pay HTTP/1.1\r\nhost: test\r\nidempotency-key: k\r\ncontent-type: application/json\r\n";
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        begun.reach(1).await;
        drop(client);
        stop.send(()).unwrap();
        // The connection is gone, so the server does not wait for it.
        server.await.unwrap().unwrap();
        assert_eq!(ended.count(), 0);
        if drains {
            let draining = tokio::spawn(async move { idem.drain(Duration::from_secs(30)).await });
            go.add_permits(1);
            draining.await.unwrap().unwrap();
        }
    });
    process.shutdown_background();
    (record(&store, "k").unwrap().status.name().as_str(), ended.count())
}

#[test]
fn a_graceful_shutdown_that_drains_ends_the_work_of_clients_who_have_gone() {
    assert_eq!(abandoned(true), ("completed", 1));
}

#[test]
fn a_graceful_shutdown_that_does_not_drain_leaves_it_to_the_lease() {
    assert_eq!(abandoned(false), ("in_progress", 0));
}

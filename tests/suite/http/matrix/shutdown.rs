//! The end of a process, with work whose client has gone, and with work whose client waits.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::MemoryStore;
use reqwest::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

use crate::http::bench::{Effects, idem, pay, payment, record};
use crate::http::matrix::Row;

/// What the client does while the service shuts down, and what the service does about its work then.
#[derive(Clone, Copy, PartialEq)]
enum Visitor {
    Waits,
    GoneAndDrained,
    GoneAndNotDrained,
}

/// Starts a service on a runtime of its own, shuts it down gracefully in the middle of a request's work, and ends the
/// runtime. The client's status, the record's state, and how often the work has ended.
fn shut_down(http: u8, end: Visitor) -> (Option<u16>, &'static str, usize) {
    let (store, begun, ended) = (MemoryStore::new(), Effects::default(), Effects::default());
    let go = Arc::new(Semaphore::new(0));
    let process = Runtime::new().unwrap();
    let status = process.block_on(async {
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
        let client = Client::builder();
        let client = if http == 2 { client.http2_prior_knowledge() } else { client.http1_only() }.build().unwrap();
        let request = client.post(format!("http://{address}/pay")).header("idempotency-key", "k").json(&payment());
        // The connection is the task's: aborted, both are gone.
        drop(client);
        let client = tokio::spawn(async move { request.send().await.unwrap().status().as_u16() });
        begun.reach(1).await;
        if end != Visitor::Waits {
            client.abort();
        }
        stop.send(()).unwrap();
        // Once it takes no new connection, it shuts down.
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(ended.count(), 0);
        let status = if end == Visitor::Waits {
            go.add_permits(1);
            Some(client.await.unwrap())
        } else {
            None
        };
        server.await.unwrap().unwrap();
        if end == Visitor::GoneAndDrained {
            assert_eq!(ended.count(), 0, "the server waits for connections only");
            let draining = tokio::spawn(async move { idem.drain(Duration::from_secs(30)).await });
            go.add_permits(1);
            draining.await.unwrap().unwrap();
        }
        status
    });
    process.shutdown_background();
    (status, record(&store, "k").unwrap().status.name().as_str(), ended.count())
}

pub(super) fn rows() -> Vec<Row> {
    let visitors = [
        ("A graceful shutdown, the client waits", Visitor::Waits),
        ("A graceful shutdown and `drain`, the client has gone", Visitor::GoneAndDrained),
        ("A graceful shutdown without `drain`, the client has gone", Visitor::GoneAndNotDrained),
    ];
    let row = |(case, visitor): (&str, _), http| {
        let (status, record, ended) = shut_down(http, visitor);
        let answers = status.map_or_else(|| "none".to_owned(), |status| super::answer(status, false));
        Row { case: case.to_owned(), http, answers, records: vec![record], runs: vec![ended] }
    };
    visitors.into_iter().flat_map(|visitor| [row(visitor, 1), row(visitor, 2)]).collect()
}

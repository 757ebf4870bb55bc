//! A service whose work waits to be let go, and which tells how far its requests have come.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use idem_axum::{Idem, MemoryStore};
use tokio::sync::Semaphore;

use crate::http::bench::{Effects, Server, idem, pay, record};
use crate::support::faulty::FaultyStore;

pub(crate) struct Held {
    pub(crate) server: Server,
    pub(crate) idem: Idem,
    pub(crate) store: MemoryStore,
    /// Between idem and the store.
    pub(crate) line: FaultyStore,
    /// Requests that arrived.
    pub(crate) arrived: Effects,
    /// Requests whose handler has answered, or was dropped.
    pub(crate) left: Effects,
    pub(crate) begun: Effects,
    pub(crate) go: Arc<Semaphore>,
}

struct Left(Effects);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.happen();
    }
}

/// Counts the requests that arrive, and those whose handler has answered or was dropped.
pub(crate) fn watched(router: Router, arrived: &Effects, left: &Effects) -> Router {
    let (arriving, leaving) = (arrived.clone(), left.clone());
    router.layer(from_fn(move |request: extract::Request, next: Next| {
        arriving.happen();
        let left = Left(leaving.clone());
        async move {
            let answer = next.run(request).await;
            drop(left);
            answer
        }
    }))
}

impl Held {
    pub(crate) async fn start() -> Self {
        Self::with(|router| router).await
    }

    pub(crate) async fn with(layer: impl FnOnce(Router) -> Router) -> Self {
        let (store, go) = (MemoryStore::new(), Arc::new(Semaphore::new(0)));
        let (arrived, left, begun) = (Effects::default(), Effects::default(), Effects::default());
        let (beginning, gate) = (begun.clone(), Arc::clone(&go));
        let work = move |_, _| {
            beginning.happen();
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok((StatusCode::CREATED, vec![b'x'; 200 * 1024]))
            }
        };
        let line = FaultyStore::over(store.clone());
        let idem = idem(line.clone()).build().unwrap();
        let router = watched(layer(pay(idem.clone(), work)), &arrived, &left);
        Self { server: Server::start(router).await, idem, store, line, arrived, left, begun, go }
    }

    pub(crate) async fn drained(&self) {
        self.idem.drain(Duration::from_secs(30)).await.unwrap();
    }

    pub(crate) fn state(&self) -> &'static str {
        record(&self.store, "k").map_or("none", |record| record.status.name().as_str())
    }
}

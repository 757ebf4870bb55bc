//! How much runs at once, and the end of a process.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::{Idem, MemoryStore, StillRunning};
use tokio::sync::Semaphore;

use crate::http::bench::{Effects, Server, idem, pay, payment, record};
use idem_core::StatusName;

/// Work that begins, and ends when it is let go.
struct Held {
    server: Server,
    idem: Idem,
    store: MemoryStore,
    begun: Effects,
    go: Arc<Semaphore>,
}

impl Held {
    async fn start(max_running: usize) -> Self {
        let (store, begun, go) = (MemoryStore::new(), Effects::default(), Arc::new(Semaphore::new(0)));
        let idem = idem(store.clone()).max_running(max_running).build().unwrap();
        let (beginning, gate) = (begun.clone(), Arc::clone(&go));
        let work = move |_, _| {
            beginning.happen();
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(StatusCode::CREATED)
            }
        };
        Self { server: Server::start(pay(idem.clone(), work)).await, idem, store, begun, go }
    }

    /// Sends a request, and hangs up once its work has begun.
    async fn abandon(&self, key: &str) {
        let next = self.begun.count() + 1;
        let line = format!("idempotency-key: {key}");
        let stream = self.server.open(&[line.as_bytes()], payment().to_string().as_bytes()).await;
        self.begun.reach(next).await;
        drop(stream);
    }
}

#[tokio::test]
async fn over_max_running_nothing_is_claimed_and_the_key_is_as_good_as_before() {
    let held = Held::start(2).await;
    held.abandon("a").await;
    held.abandon("b").await;
    let refused = held.server.pay("c").await;
    assert_eq!((refused.status, refused.code()), (503, "IDEMPOTENCY_OVERLOADED".to_owned()));
    assert_eq!(refused.json()["next"], "same_key");
    assert!(record(&held.store, "c").is_none());
    held.go.add_permits(3);
    held.idem.drain(Duration::from_secs(20)).await.unwrap();
    let after = held.server.pay("c").await;
    assert_eq!((after.status, after.replayed(), held.begun.count()), (201, false, 3));
}

#[tokio::test]
async fn drain_waits_for_work_whose_client_has_gone_and_says_what_it_did_not_wait_for() {
    let held = Held::start(10).await;
    assert_eq!(held.idem.drain(Duration::ZERO).await, Ok(()), "nothing runs");
    held.abandon("a").await;
    held.abandon("b").await;
    let late = held.idem.drain(Duration::from_millis(20)).await;
    assert_eq!(late, Err(StillRunning { count: 2 }));
    held.go.add_permits(2);
    held.idem.drain(Duration::from_secs(20)).await.unwrap();
    for key in ["a", "b"] {
        assert_eq!(record(&held.store, key).unwrap().status.name(), StatusName::Completed, "{key}");
    }
}

#[tokio::test]
async fn work_that_panicked_or_was_answered_from_the_record_leaves_its_place() {
    let idem = idem(MemoryStore::new()).max_running(1).build().unwrap();
    let work = async |payment: crate::http::command::Pay, _| {
        assert_ne!(payment.account, "broken");
        Ok(StatusCode::CREATED)
    };
    let server = Server::start(pay(idem.clone(), work)).await;
    let broken = serde_json::json!({ "account": "broken", "cents": 1 });
    assert_eq!(server.post("/pay", "p", broken).await.code(), "IDEMPOTENCY_WORK_FAILED");
    idem.drain(Duration::from_secs(20)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(server.pay("k").await.status, 201);
        idem.drain(Duration::from_secs(20)).await.unwrap();
    }
}

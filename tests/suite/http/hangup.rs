//! Clients that go away, in every way and at every moment: nothing that was claimed is cancelled.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use bytes::Bytes;
use idem_axum::{Idem, MemoryStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::http::bench::{Effects, Server, idem, pay, payment, record};
use crate::support::faulty::{FaultyStore, Hold, Request};

/// How far the request has come when its client goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    BodyHalfSent,
    /// The claim is on its way to the store.
    Claiming,
    WorkRuns,
    /// The answer is on its way to the store.
    Storing,
    AnswerUnread,
}

/// How the client goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Fin,
    Rst,
    HalfClose,
    H2Fin,
    H2Rst,
    H2RstStream,
}

/// A service that tells how far its requests have come, whose work waits to be let go.
pub(crate) struct Held {
    pub(crate) server: Server,
    pub(crate) idem: Idem,
    pub(crate) store: MemoryStore,
    /// Between idem and the store.
    line: FaultyStore,
    /// Requests that arrived.
    arrived: Effects,
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

    fn state(&self) -> &'static str {
        record(&self.store, "k").map_or("none", |record| record.status.name().as_str())
    }

    /// What the store is asked at that moment, if it is.
    fn hold(&self, moment: Moment) -> Option<Hold> {
        match moment {
            Moment::Claiming => Some(self.line.hold(Request::Claim)),
            Moment::Storing => Some(self.line.hold(Request::Finish)),
            Moment::BodyHalfSent | Moment::WorkRuns | Moment::AnswerUnread => None,
        }
    }

    async fn come_to(&self, moment: Moment, hold: Option<&Hold>) {
        self.arrived.reach(1).await;
        if moment == Moment::Storing {
            self.go.add_permits(1);
        }
        if let Some(hold) = hold {
            hold.arrived().await;
        }
        match moment {
            Moment::BodyHalfSent | Moment::Claiming | Moment::Storing => {}
            Moment::WorkRuns => self.begun.reach(1).await,
            Moment::AnswerUnread => {
                self.go.add_permits(1);
                self.left.reach(1).await;
            }
        }
    }

    async fn http1(&self, moment: Moment, way: Way, hold: Option<&Hold>) {
        let body = payment().to_string();
        let head = format!(
            "POST /pay HTTP/1.1\r\nhost: test\r\nidempotency-key: k\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = if moment == Moment::BodyHalfSent { body.len() / 2 } else { body.len() };
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        stream.write_all(&[head.as_bytes(), &body.as_bytes()[..sent]].concat()).await.unwrap();
        self.come_to(moment, hold).await;
        match way {
            Way::HalfClose => stream.shutdown().await.unwrap(),
            Way::Rst => stream.set_zero_linger().unwrap(),
            _ => {}
        }
        if way == Way::HalfClose {
            // It goes on listening.
            self.left.reach(1).await;
        }
        drop(stream);
        self.left.reach(1).await;
    }

    async fn http2(&self, moment: Moment, way: Way, hold: Option<&Hold>) {
        let tcp = TcpStream::connect(self.server.address).await.unwrap();
        if way == Way::H2Rst {
            tcp.set_zero_linger().unwrap();
        }
        let (mut client, connection) = h2::client::handshake(tcp).await.unwrap();
        let connection = tokio::spawn(connection);
        let body = payment().to_string();
        let request = axum::http::Request::post(format!("http://{}/pay", self.server.address))
            .header("idempotency-key", "k")
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .body(())
            .unwrap();
        let (_answer, mut stream) = client.send_request(request, false).unwrap();
        let whole = moment != Moment::BodyHalfSent;
        let sent = if whole { body.len() } else { body.len() / 2 };
        stream.send_data(Bytes::copy_from_slice(&body.as_bytes()[..sent]), whole).unwrap();
        self.come_to(moment, hold).await;
        if way == Way::H2RstStream {
            stream.send_reset(h2::Reason::CANCEL);
        } else {
            connection.abort();
        }
        self.left.reach(1).await;
    }
}

/// Effects and the record's state when the client has gone, then after the work was let go; then the next request.
async fn seen(moment: Moment, way: Way) -> (usize, &'static str, usize, &'static str, &'static str) {
    let held = Held::start().await;
    let hold = held.hold(moment);
    match way {
        Way::Fin | Way::Rst | Way::HalfClose => held.http1(moment, way, hold.as_ref()).await,
        Way::H2Fin | Way::H2Rst | Way::H2RstStream => held.http2(moment, way, hold.as_ref()).await,
    }
    let gone = (held.begun.count(), held.state());
    if let Some(hold) = hold {
        hold.let_go();
    }
    held.go.add_permits(1);
    held.drained().await;
    let after = (held.begun.count(), held.state());
    held.go.add_permits(1);
    let next = held.server.pay("k").await;
    assert_eq!((next.status, next.body.len()), (201, 200 * 1024), "{moment:?} {way:?}");
    (gone.0, gone.1, after.0, after.1, if next.replayed() { "replayed" } else { "ran" })
}

#[tokio::test]
async fn whoever_hangs_up_however_and_whenever_cancels_nothing_that_was_claimed() {
    for way in [Way::Fin, Way::Rst, Way::HalfClose, Way::H2Fin, Way::H2Rst, Way::H2RstStream] {
        for (moment, expected) in [
            (Moment::BodyHalfSent, (0, "none", 0, "none", "ran")),
            (Moment::Claiming, (0, "none", 1, "completed", "replayed")),
            (Moment::WorkRuns, (1, "in_progress", 1, "completed", "replayed")),
            (Moment::Storing, (1, "in_progress", 1, "completed", "replayed")),
            (Moment::AnswerUnread, (1, "completed", 1, "completed", "replayed")),
        ] {
            let seen = tokio::time::timeout(Duration::from_secs(60), seen(moment, way)).await;
            assert_eq!(seen.ok(), Some(expected), "{moment:?} {way:?}");
        }
    }
}

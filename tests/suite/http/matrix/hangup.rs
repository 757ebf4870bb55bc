//! Clients that go away, in every way and at every moment: nothing that was claimed is cancelled.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::bench::payment;
use crate::http::held::Held;
use crate::http::matrix::Row;
use crate::support::faulty::{Hold, Request};

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

impl Moment {
    const ALL: [Self; 5] = [Self::BodyHalfSent, Self::Claiming, Self::WorkRuns, Self::Storing, Self::AnswerUnread];

    fn words(self) -> &'static str {
        match self {
            Self::BodyHalfSent => "half of its body is sent",
            Self::Claiming => "its key is being claimed",
            Self::WorkRuns => "the work runs",
            Self::Storing => "its answer is being stored",
            Self::AnswerUnread => "the answer is on its way",
        }
    }
}

impl Way {
    const ALL: [Self; 6] = [Self::Fin, Self::Rst, Self::HalfClose, Self::H2Fin, Self::H2Rst, Self::H2RstStream];

    fn words(self) -> &'static str {
        match self {
            Self::Fin | Self::H2Fin => "closes its connection (FIN)",
            Self::Rst | Self::H2Rst => "resets its connection (RST)",
            Self::HalfClose => "closes its half of the connection",
            Self::H2RstStream => "resets its stream (RST_STREAM)",
        }
    }

    fn http(self) -> u8 {
        match self {
            Self::Fin | Self::Rst | Self::HalfClose => 1,
            Self::H2Fin | Self::H2Rst | Self::H2RstStream => 2,
        }
    }
}

impl Held {
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

/// What is seen when the client has gone, after the work was let go, and of the next request.
async fn seen(moment: Moment, way: Way) -> Row {
    let held = Held::start().await;
    let hold = held.hold(moment);
    match way.http() {
        1 => held.http1(moment, way, hold.as_ref()).await,
        _ => held.http2(moment, way, hold.as_ref()).await,
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
    assert_eq!(next.body.len(), 200 * 1024, "{moment:?} {way:?}");
    Row {
        case: format!("A client {} while {}", way.words(), moment.words()),
        http: way.http(),
        answers: format!("none; the next one {}", super::answer(next.status, next.replayed())),
        records: [gone.1, after.1].to_vec(),
        runs: [gone.0, after.0].to_vec(),
    }
}

pub(super) async fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for way in Way::ALL {
        for moment in Moment::ALL {
            let seen = tokio::time::timeout(Duration::from_secs(60), seen(moment, way)).await;
            rows.push(seen.unwrap_or_else(|_| panic!("{moment:?} {way:?}: nothing happens")));
        }
    }
    rows
}

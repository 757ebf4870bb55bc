//! A line to the database that can be cut: after any number of chunks, in either direction.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Whose bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// What happens to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Both ends get a reset; the chunk is lost.
    ResetBefore,
    /// The chunk arrives, and then both ends get a reset.
    ResetAfter,
    /// The chunk is lost, and nothing passes any more, in either direction; nobody is told.
    Stall,
}

/// Which chunk, counted from when the line was told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) direction: Direction,
    pub(crate) chunk: u32,
    pub(crate) how: How,
}

/// Passes connections on to a server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    plan: Plan,
}

type Plan = Arc<Mutex<Option<Cut>>>;

/// What has become of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Whole,
    Reset,
    Stalled,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, plan) = (listener.local_addr().unwrap(), Plan::default());
        let planned = Arc::clone(&plan);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, server, Arc::clone(&planned)));
            }
        });
        Self { address, plan }
    }

    /// Cuts one connection once, whichever comes to that chunk.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.plan.lock().unwrap() = Some(cut);
    }

    /// Whether it came to that.
    pub(crate) fn has_cut(&self) -> bool {
        self.plan.lock().unwrap().is_none()
    }

    /// Cuts nothing any more.
    pub(crate) fn forgive(&self) {
        *self.plan.lock().unwrap() = None;
    }
}

async fn connect(client: TcpStream, server: SocketAddr, plan: Plan) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
        // Closed, it is reset.
        end.set_zero_linger().unwrap();
    }
    let line = watch::Sender::new(Line::Whole);
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let there = pass(Direction::ToServer, from_client, to_server, &plan, &line);
    let back = pass(Direction::ToClient, from_server, to_client, &plan, &line);
    // Whichever ends first ends both, by dropping all four halves.
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

async fn pass(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    plan: &Plan,
    line: &watch::Sender<Line>,
) {
    let mut chunk = vec![0; 64 * 1024];
    let mut state = line.subscribe();
    loop {
        let read = tokio::select! {
            read = from.read(&mut chunk) => read,
            changed = state.changed() => {
                if changed.is_ok() && *state.borrow() == Line::Reset {
                    return;
                }
                continue;
            }
        };
        let length = match read {
            Ok(length) if length > 0 => length,
            // An end that goes away takes the other with it, but nobody sees that through a stalled line.
            _ if *line.borrow() == Line::Stalled => return std::future::pending().await,
            _ => return,
        };
        match due(plan, direction) {
            Some(How::ResetBefore) => return,
            Some(How::ResetAfter) => {
                let _arrives_or_not = to.write_all(&chunk[..length]).await;
                return;
            }
            Some(How::Stall) => {
                line.send_replace(Line::Stalled);
            }
            None => {}
        }
        if *line.borrow() == Line::Whole && to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
}

/// Counts a chunk; what is to happen to it.
fn due(plan: &Plan, direction: Direction) -> Option<How> {
    let mut plan = plan.lock().unwrap();
    let cut = plan.as_mut().filter(|cut| cut.direction == direction)?;
    if cut.chunk > 0 {
        cut.chunk -= 1;
        return None;
    }
    plan.take().map(|cut| cut.how)
}

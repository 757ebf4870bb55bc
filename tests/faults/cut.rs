//! A line to PostgreSQL that breaks at each chunk of a payment, in both directions, with the chunk and without it, with
//! a reset and in silence.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use idem_core::consumer::Delivery;
use payments::provider::Kind;
use tokio::time::timeout;

use crate::history::{History, What};
use crate::home::{Address, Postgres};
use crate::invariants::answered;
use crate::proxy::{Cut, Direction, How, Proxy};
use crate::service::{Service, pay};
use crate::world::{KINDS, World, rounds};

/// No payment sends or gets as many.
const CHUNKS: u32 = 40;

async fn trial(kind: Kind, direction: Direction, how: How) -> u32 {
    let name = format!("{kind:?}, {direction:?}, {how:?}");
    let (folder, history) = (tempfile::tempdir().unwrap(), History::new());
    let database = idem_cluster::Cluster::shared().database().await;
    let Address::Postgres { port, user, database: named } = Address::database(&database) else { unreachable!() };
    let proxy = Proxy::to(SocketAddr::from(([127, 0, 0, 1], port))).await;
    let at = |port| Address::Postgres { port, user: user.clone(), database: named.clone() };
    let world = |port| World { records: at(port), folder: folder.path().to_owned(), kind };
    let service = Service::<Postgres>::open(&world(proxy.address.port())).await.unwrap();
    // Another node, whose line is whole.
    let other = Service::<Postgres>::open(&world(port)).await.unwrap();
    let mut cuts = 0;
    for round in 0..rounds() {
        for chunk in 0..CHUNKS {
            let key = format!("{round}-{chunk}");
            proxy.cut(Cut { direction, chunk, how });
            history.add(What::Invoke, &key, "pays");
            let first = timeout(Duration::from_secs(60), service.pay(&key, &pay(&key))).await;
            let first = first.unwrap_or_else(|_| panic!("{name}: chunk {chunk}: the first request never ends"));
            history.add(What::Info, &key, format!("{first:?}"));
            if !proxy.has_cut() {
                // No payment is that long: from here on nothing would be cut.
                proxy.forgive();
                assert_eq!(Delivery::of(&first), Delivery::Ack, "{name}: {}", history.of(&key));
                assert!(chunk >= 3, "{name}: a payment of {chunk} chunks");
                break;
            }
            cuts += 1;
            if kind == Kind::Neither {
                // What nobody can be asked about is put before a person by a worker, and by nobody else.
                while let Delivery::Later(_) = Delivery::of(&service.pay(&key, &pay(&key)).await) {
                    other.engine.recover_once(100).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            let here = timeout(Duration::from_secs(60), service.settled(&key, &pay(&key))).await;
            let there = answered(&name, &history, &other, &key).await;
            assert_eq!(here, Ok(there), "{name}: two nodes tell two stories\n{}", history.of(&key));
            let answer = there;
            if Delivery::of(&first) == Delivery::Ack {
                assert_eq!(answer, Delivery::Ack, "{name}: the first client was told so\n{}", history.of(&key));
            }
        }
    }
    cuts
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_the_line_to_the_database_breaks_nothing_is_paid_twice_and_everybody_gets_an_answer() {
    let mut trials = Vec::new();
    for kind in KINDS {
        for direction in [Direction::ToServer, Direction::ToClient] {
            for how in [How::ResetBefore, How::ResetAfter, How::Stall] {
                trials.push(trial(kind, direction, how));
            }
        }
    }
    let cuts: u32 = join_all(trials).await.iter().sum();
    println!("{cuts} cuts");
    assert!(cuts >= 18 * 3, "hardly anything was cut");
}

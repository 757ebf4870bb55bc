//! Several processes on one file: each key has one owner among all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use idem_core::store::{Claiming, Guarded, Seen, TakeOver};
use idem_core::{Fence, OwnerToken};
use idem_sqlx::SqliteStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{LONG, inserts, new_claim, temporary, told};

/// They claim one list of keys, at the same time and in the same order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_claim_one_list_of_keys() {
    let (store, directory) = temporary().await;
    race(&store, directory.path(), "claim").await;
}

/// They take over one list of records whose leases are over, each of which both have seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_take_over_one_list_of_records() {
    let (store, directory) = temporary().await;
    for number in 0..KEYS {
        assert!(inserts(&store, &new_claim(&key(number), Duration::ZERO)).await);
    }
    race(&store, directory.path(), "take over").await;
}

/// Starts the other process, races it, and compares what each believes to own with the file.
async fn race(store: &SqliteStore, directory: &Path, how: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut rival = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", concat!(module_path!(), "::the_other_process"), "--ignored"].map(without_crate))
        .env("IDEM_TEST_FILE", store.file())
        .env("IDEM_TEST_RACE", how)
        .env("IDEM_TEST_RIVAL", listener.local_addr().unwrap().to_string())
        .spawn()
        .unwrap();
    let (rivals, _) = listener.accept().await.unwrap();
    let mine = own(store, how, Rival { stream: rivals, leads_on: 0 }).await;
    assert!(rival.wait().unwrap().success());
    let theirs = std::fs::read_to_string(directory.join("theirs")).unwrap();
    let theirs: BTreeMap<usize, String> = theirs
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(key, owner)| (key.parse().unwrap(), owner.into()))
        .collect();
    assert!(!mine.is_empty() && !theirs.is_empty(), "{} and {} won: that was no race", mine.len(), theirs.len());
    let fence = if how == "claim" { Fence::FIRST } else { Fence::FIRST.next() };
    for number in 0..KEYS {
        let record = store.record(&new_claim(&key(number), LONG).scope).await.unwrap().unwrap();
        let owner = match (mine.get(&number), theirs.get(&number)) {
            (Some(owner), None) | (None, Some(owner)) => owner,
            owners => panic!("{} has the owners {owners:?}", key(number)),
        };
        assert_eq!((&name(&record.owner), record.fence), (owner, fence));
    }
}

#[tokio::test]
#[ignore = "started by the races of two processes"]
async fn the_other_process() {
    // Run by name without its parent, it has nothing to do.
    let Ok(file) = std::env::var("IDEM_TEST_FILE") else { return };
    let store = SqliteStore::connect(&file).await.unwrap();
    let directory = Path::new(&file).parent().unwrap();
    let stream = TcpStream::connect(std::env::var("IDEM_TEST_RIVAL").unwrap()).await.unwrap();
    let owned = own(&store, &std::env::var("IDEM_TEST_RACE").unwrap(), Rival { stream, leads_on: 1 }).await;
    let lines: Vec<_> = owned.iter().map(|(number, owner)| format!("{number} {owner}")).collect();
    std::fs::write(directory.join("theirs"), lines.join("\n")).unwrap();
}

/// The other process, and the keys for which it is this one that gives the word.
struct Rival {
    stream: TcpStream,
    leads_on: usize,
}

impl Rival {
    /// Waits until both are ready for a key. Whoever gives the word comes for it a moment before the other does, by
    /// turns, so that neither can win them all, however busy the machine is.
    async fn meet(&mut self, number: usize) {
        self.stream.set_nodelay(true).unwrap();
        if number % 2 == self.leads_on {
            self.stream.read_u8().await.unwrap();
            self.stream.write_u8(0).await.unwrap();
        } else {
            self.stream.write_u8(0).await.unwrap();
            self.stream.read_u8().await.unwrap();
        }
    }
}

/// Goes through the list beside the other process; gives what was won.
async fn own(store: &SqliteStore, how: &str, mut rival: Rival) -> BTreeMap<usize, String> {
    let mut takes = Vec::new();
    if how == "take over" {
        for number in 0..KEYS {
            let record = store.record(&new_claim(&key(number), LONG).scope).await.unwrap().unwrap();
            takes.push(TakeOver { seen: Seen::of(&record), owner: OwnerToken::random(), lease: LONG });
        }
    }
    let mut owned = BTreeMap::new();
    for number in 0..KEYS {
        rival.meet(number).await;
        let won = match takes.get(number) {
            None => {
                let claim = new_claim(&key(number), LONG);
                inserts(store, &claim).await.then_some(claim.owner)
            }
            Some(take) => match store.take_over(take).await {
                Ok(Guarded::Written { .. }) => Some(take.owner),
                Ok(Guarded::Changed(_)) => None,
                Err(error) => panic!("{}", told(&error)),
            },
        };
        if let Some(owner) = won {
            owned.insert(number, name(&owner));
        }
    }
    owned
}

fn key(number: usize) -> String {
    format!("key-{number}")
}

fn name(owner: &OwnerToken) -> String {
    format!("{:032x}", u128::from_be_bytes(*owner.as_bytes()))
}

/// A test is named without the name of its crate.
fn without_crate(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, path)| path)
}

const KEYS: usize = 300;

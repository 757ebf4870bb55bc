//! Several processes on one file: each key has one owner among all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_core::store::{Claiming, Guarded, Seen, TakeOver};
use idem_core::{Fence, OwnerToken};
use idem_sqlx::SqliteStore;

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
    let mut rival = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", concat!(module_path!(), "::the_other_process"), "--ignored"].map(without_crate))
        .env("IDEM_TEST_FILE", store.file())
        .env("IDEM_TEST_RACE", how)
        .spawn()
        .unwrap();
    let mine = own(store, directory, how, "mine").await;
    assert!(rival.wait().unwrap().success());
    let theirs = std::fs::read_to_string(directory.join("theirs")).unwrap();
    let theirs: BTreeMap<usize, String> = theirs
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(key, owner)| (key.parse().unwrap(), owner.into()))
        .collect();
    // On a busy machine one of them may win all: that both have come for every key is what makes it a race.
    println!("{} and {} won", mine.len(), theirs.len());
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
    let owned = own(&store, directory, &std::env::var("IDEM_TEST_RACE").unwrap(), "theirs").await;
    let lines: Vec<_> = owned.iter().map(|(number, owner)| format!("{number} {owner}")).collect();
    std::fs::write(directory.join("theirs"), lines.join("\n")).unwrap();
}

/// Goes through the list once the other process is ready too; gives what was won.
async fn own(store: &SqliteStore, directory: &Path, how: &str, side: &str) -> BTreeMap<usize, String> {
    let mut takes = Vec::new();
    if how == "take over" {
        for number in 0..KEYS {
            let record = store.record(&new_claim(&key(number), LONG).scope).await.unwrap().unwrap();
            takes.push(TakeOver { seen: Seen::of(&record), owner: OwnerToken::random(), lease: LONG });
        }
    }
    let start = start(directory, side).await;
    let mut owned = BTreeMap::new();
    for (number, at) in (0..KEYS).zip(1..) {
        // Both come for a key at the same moment: one that never lets the other in would win them all.
        let at = start + PACE * at;
        tokio::time::sleep(at.duration_since(SystemTime::now()).unwrap_or_default()).await;
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

/// A moment that both processes know, once both are ready.
async fn start(directory: &Path, side: &str) -> SystemTime {
    let (ready, start) = (directory.join("ready"), directory.join("start"));
    if side == "theirs" {
        std::fs::write(&ready, "").unwrap();
    }
    for _ in 0..120_000 {
        if side == "mine" && ready.exists() {
            let soon = SystemTime::now() + PACE * 10;
            let text = soon.duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string();
            std::fs::write(directory.join("start.new"), text).unwrap();
            std::fs::rename(directory.join("start.new"), &start).unwrap();
            return soon;
        }
        if side == "theirs" && start.exists() {
            let nanos = std::fs::read_to_string(&start).unwrap().parse().unwrap();
            return UNIX_EPOCH + Duration::from_nanos(nanos);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the other process never came");
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
const PACE: Duration = Duration::from_millis(5);

//! Never two owners, and never "database is locked".

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use idem_core::store::{Claiming, End, Fenced, Finish, Guarded, NewCall, Owning, Seen, Step, TakeOver};
use idem_core::{CallClass, DownstreamKey, Fence, OwnerToken, Ownership, Scope, StatusName, StoredResponse};
use idem_sqlx::SqliteStore;
use tokio::sync::Barrier;

use super::{KEEP, LONG, inserts, new_claim, temporary, told};

/// One owner; the others find the record, at once and without an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_thirty_two_tasks_on_one_key_one_inserts() {
    let (store, other, _directory) = two_stores().await;
    for round in 0..8 {
        let inserted = at_once(32, |racer| {
            let store = if racer % 2 == 0 { store.clone() } else { other.clone() };
            async move { inserts(&store, &new_claim(&format!("key-{round}"), LONG)).await }
        });
        assert_eq!(inserted.await.into_iter().filter(|&inserted| inserted).count(), 1);
    }
}

/// Strangers wait for each other, and all get through.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_tasks_on_different_keys_all_insert() {
    let (store, other, _directory) = two_stores().await;
    let done = at_once(32, |racer| {
        let store = if racer % 2 == 0 { store.clone() } else { other.clone() };
        async move { works_through(&store, &format!("racer-{racer}"), 8).await }
    });
    assert_eq!(done.await.into_iter().sum::<usize>(), 32 * 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fresh_keys_have_one_owner_each() {
    let (store, other, _directory) = two_stores().await;
    for key in 0..KEYS {
        let key = format!("key-{key}");
        let owners = at_once(RACERS, |racer| {
            let store = if racer % 2 == 0 { store.clone() } else { other.clone() };
            let claim = new_claim(&key, LONG);
            async move { inserts(&store, &claim).await.then_some(claim.owner) }
        });
        let owners: Vec<_> = owners.await.into_iter().flatten().collect();
        let record = store.record(&new_claim(&key, LONG).scope).await.unwrap().unwrap();
        assert_eq!((owners.as_slice(), record.fence), ([record.owner].as_slice(), Fence::FIRST));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leases_that_are_over_have_one_heir_each() {
    let (store, other, _directory) = two_stores().await;
    for key in 0..KEYS {
        let claim = new_claim(&format!("key-{key}"), Duration::ZERO);
        assert!(inserts(&store, &claim).await);
        one_takes_over([&store, &other], claim.scope).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failed_records_are_retried_by_one_each() {
    let (store, other, _directory) = two_stores().await;
    for key in 0..KEYS {
        let claim = new_claim(&format!("key-{key}"), LONG);
        assert!(inserts(&store, &claim).await);
        let owner = Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner };
        let end = End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP };
        store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end }).await.unwrap();
        one_takes_over([&store, &other], claim.scope).await;
    }
}

/// B decides, A announces, B takes over, from two stores at once and under load: whoever is first, the call is not made
/// twice. Each of them is first at times.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_announcement_races_a_take_over() {
    let (store, other, _directory) = two_stores().await;
    let busy = [(store.clone(), "stranger-0"), (other.clone(), "stranger-1")];
    let busy = busy.map(|(store, name)| tokio::spawn(async move { works_through(&store, name, usize::MAX).await }));
    let mut announced = 0;
    for round in 0..KEYS {
        let claim = new_claim(&format!("key-{round}"), Duration::ZERO);
        assert!(inserts(&store, &claim).await);
        let seen = Seen::of(&store.record(&claim.scope).await.unwrap().unwrap());
        let key = DownstreamKey::from_stored(format!("charge_{round}"));
        let open = Some(NewCall { name: "charge".into(), class: CallClass::Neither, key });
        let owner = Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner };
        let won = at_once(2, |racer| {
            let (store, other, owner, seen) = (store.clone(), other.clone(), owner.clone(), seen.clone());
            let step = Step { closed: Vec::new(), open: open.clone(), resource: None, checkpoint: None, lease: LONG };
            async move {
                // One has a start on the other, now this one, now that, from nothing to much.
                if racer == round % 2 {
                    tokio::time::sleep(Duration::from_micros(round as u64 * 200)).await;
                }
                if racer == 0 {
                    matches!(store.step(&owner, &step).await.unwrap(), Fenced::Written { .. })
                } else {
                    let take = TakeOver { seen, owner: OwnerToken::random(), lease: LONG };
                    matches!(other.take_over(&take).await.unwrap(), Guarded::Written { .. })
                }
            }
        })
        .await;
        let record = store.record(&claim.scope).await.unwrap().unwrap();
        assert_ne!(won[0], won[1]);
        assert_eq!((record.has_open_call(), record.owner == claim.owner), (won[0], won[0]));
        announced += usize::from(won[0]);
    }
    for stranger in busy {
        assert!(!stranger.is_finished(), "there was no load");
        stranger.abort();
    }
    assert!((1..KEYS).contains(&announced), "{announced} of {KEYS} announcements were first");
}

/// Whoever drops a future half-way leaves the writer free, keeps what was acknowledged, and learns by the same claim
/// whether it was made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_callers_leave_nothing_half_done() {
    let (store, other, _directory) = two_stores().await;
    let mut made = 0;
    for turn in 0..200_u64 {
        let claim = new_claim(&format!("key-{turn}"), LONG);
        let owner = Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner };
        let work = async {
            assert!(inserts(&store, &claim).await);
            let step = Step { closed: Vec::new(), open: None, resource: None, checkpoint: None, lease: LONG };
            store.step(&owner, &step).await.unwrap();
            let end = End::Unknown { ask_in: LONG };
            store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end }).await.unwrap();
        };
        let cut = tokio::time::timeout(Duration::from_micros(turn * 7), work).await.is_err();

        // A stranger is acknowledged only for what another connection sees: no transaction was left open before it.
        let stranger = new_claim(&format!("stranger-{turn}"), LONG);
        assert!(inserts(&store, &stranger).await);
        assert!(other.record(&stranger.scope).await.unwrap().is_some());
        assert!(inserts(&other, &new_claim(&format!("neighbour-{turn}"), LONG)).await);

        let there = other.record(&claim.scope).await.unwrap();
        assert!(cut || there.as_ref().is_some_and(|record| record.status.name() == StatusName::Unknown));
        // The same claim again, and its own name tells.
        match there {
            Some(record) => {
                made += 1;
                assert_eq!((record.owner, record.fence), (claim.owner, Fence::FIRST));
                assert!(!inserts(&store, &claim).await);
            }
            None => assert!(inserts(&store, &claim).await),
        }
    }
    assert!(made > 0);
}

/// The store is bound to no runtime: the one it was opened on may go.
#[test]
fn a_store_outlives_the_runtime_that_opened_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let opening = runtime();
    let (store, _directory) = opening.block_on(temporary());
    drop(opening);
    assert!(runtime().block_on(inserts(&store, &new_claim("key-1", LONG))));
    assert!(!runtime().block_on(inserts(&store, &new_claim("key-1", LONG))));
}

async fn two_stores() -> (SqliteStore, SqliteStore, tempfile::TempDir) {
    let (store, directory) = temporary().await;
    let other = SqliteStore::open(store.file()).await.unwrap();
    (store, other, directory)
}

/// Claims and completes that many keys; gives how many it owned.
async fn works_through(store: &SqliteStore, name: &str, keys: usize) -> usize {
    let mut owned = 0;
    for key in 0..keys {
        let claim = new_claim(&format!("{name}-{key}"), LONG);
        if inserts(store, &claim).await {
            let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
            let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(b"{}".to_vec()) };
            let end = End::Completed { response, keep: KEEP };
            let finished = store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end }).await;
            finished.unwrap_or_else(|error| panic!("{}", told(&error)));
            owned += 1;
        }
    }
    owned
}

async fn one_takes_over(stores: [&SqliteStore; 2], scope: Scope) {
    let seen = Seen::of(&stores[0].record(&scope).await.unwrap().unwrap());
    let heirs = at_once(RACERS, |racer| {
        let store = stores[racer % 2].clone();
        let take = TakeOver { seen: seen.clone(), owner: OwnerToken::random(), lease: LONG };
        async move {
            match store.take_over(&take).await {
                Ok(Guarded::Written { .. }) => Some(take.owner),
                Ok(Guarded::Changed(found)) => {
                    assert!(found.is_some());
                    None
                }
                Err(error) => panic!("{}", told(&error)),
            }
        }
    });
    let heirs: Vec<_> = heirs.await.into_iter().flatten().collect();
    let record = stores[1].record(&scope).await.unwrap().unwrap();
    assert_eq!((heirs.as_slice(), record.fence, record.attempts), ([record.owner].as_slice(), seen.fence.next(), 2));
}

/// Starts that many tasks together.
async fn at_once<T: Send + 'static, F>(tasks: usize, task: impl Fn(usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(tasks));
    let tasks = (0..tasks).map(|number| {
        let (start, task) = (Arc::clone(&start), task(number));
        tokio::spawn(async move {
            start.wait().await;
            task.await
        })
    });
    join_all(tasks).await.into_iter().map(|joined| joined.expect("no task panics")).collect()
}

const KEYS: usize = 300;
const RACERS: usize = 16;

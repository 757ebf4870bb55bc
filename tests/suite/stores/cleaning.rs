//! The engine's sweep over every store: a round ends when nothing is over any more, or at its bound. A store joins by
//! saying how a fresh one is made, [`cleaning`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::events::{Event, Observer};
use idem_core::retention::Sweep;
use idem_core::store::{Claimed, End, Finish, NewClaim, Store, Swept};
use idem_core::{CommandHash, Engine, Fence, Keep, OwnerToken, Ownership, Scope, StatusName, StoredResponse, Tenant};

/// Makes one `#[tokio::test]` of each promise.
macro_rules! cleaning {
    ($fresh:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn one_sweep_leaves_nothing_that_is_over() {
            let (store, _lives_as_long) = $fresh.await;
            crate::stores::cleaning::one_sweep_leaves_nothing_that_is_over(store).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_sweep_keeps_to_its_batches_and_tells_of_each() {
            let (store, _lives_as_long) = $fresh.await;
            crate::stores::cleaning::a_sweep_keeps_to_its_batches_and_tells_of_each(store).await;
        }
    };
}
pub(super) use cleaning;

/// Windows, metadata and bodies that end at the same time: batches of one kind, of another, and of both.
pub(super) async fn one_sweep_leaves_nothing_that_is_over(store: impl Store + Clone + 'static) {
    for records in [57, 60] {
        let scopes = over(&store, records).await;
        let (engine, told) = observed(&store);
        let sweep = Sweep { batch: 10, batches: 100, pause: Duration::ZERO, purge_tombstones: false };
        let swept = engine.sweep(&sweep).await.unwrap();
        let [mut expired, mut gone] = [0, 0];
        for scope in &scopes {
            match store.look(scope).await.unwrap() {
                Some(found) if found.record.status.name() == StatusName::Expired => expired += 1,
                Some(found) => panic!("{:?} was left", found.record),
                None => gone += 1,
            }
        }
        assert_eq!((expired, gone), (records / 2, records - records / 2));
        let (all, purged) = (records as u64, gone as u64);
        assert_eq!((swept.expired, swept.purged), (all, purged));
        assert_eq!(sum(&told), swept);
    }
}

/// Two batches of five are two batches of five, though more is over, and each is told of.
pub(super) async fn a_sweep_keeps_to_its_batches_and_tells_of_each(store: impl Store + Clone + 'static) {
    over(&store, 40).await;
    let (engine, told) = observed(&store);
    let sweep = Sweep { batch: 5, batches: 2, pause: Duration::ZERO, purge_tombstones: false };
    let swept = engine.sweep(&sweep).await.unwrap();
    assert_eq!(told.lock().unwrap().len(), 2);
    assert_eq!(sum(&told), swept);
    for batch in told.lock().unwrap().iter() {
        let most = batch.bodies.max(batch.expired).max(batch.purged);
        assert!((1..=5).contains(&most), "{batch:?}");
    }
    // The next round goes on where this one ended, and ends with the batch that finds nothing.
    told.lock().unwrap().clear();
    let rest = engine.sweep(&Sweep { batches: 100, ..sweep }).await.unwrap();
    assert_eq!((swept.expired + rest.expired, swept.purged + rest.purged), (40, 20));
    let told = told.lock().unwrap();
    assert!(told.len() > 2 && told.last() == Some(&Swept::default()), "{told:?}");
}

/// Completed records whose window is over: every other one's metadata is over too.
async fn over(store: &impl Store, records: usize) -> Vec<Scope> {
    let moment = Duration::from_millis(1);
    let mut scopes = Vec::new();
    for number in 0..records {
        let tenant = Tenant::new(format!("tenant-{records}")).unwrap();
        let scope = Scope::new(tenant, "create_payment", format!("key-{number}").parse().unwrap());
        let hash = CommandHash::from_parts(1, 1, [7; 32]).unwrap();
        let owner = OwnerToken::random();
        let claim = NewClaim { scope: scope.clone(), hash, owner, lease: LONG };
        assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
        let metadata = if number % 2 == 0 { Duration::ZERO } else { LONG };
        let keep = Keep { window: moment, body: moment, metadata };
        let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(b"{}".to_vec()) };
        let end = End::Completed { response, keep };
        let owner = Ownership { scope: scope.clone(), fence: Fence::FIRST, owner };
        store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end }).await.unwrap();
        scopes.push(scope);
    }
    // Until the last of them is over by the store's own clock.
    let last = store.look(&scopes[records - 1]).await.unwrap().unwrap().now;
    while store.look(&scopes[records - 1]).await.unwrap().unwrap().now <= last + moment {
        tokio::time::sleep(moment).await;
    }
    scopes
}

type Told = Arc<Mutex<Vec<Swept>>>;

/// An engine, and what it tells of its sweeps.
fn observed(store: &(impl Store + Clone + 'static)) -> (Engine, Told) {
    struct Keeps(Told);

    impl Observer for Keeps {
        fn observe(&self, event: &Event<'_>) {
            if let Event::Swept(swept) = event {
                self.0.lock().unwrap().push(*swept);
            }
        }
    }

    let told = Told::default();
    let engine = Engine::builder(store.clone()).observer(Keeps(Arc::clone(&told))).build().unwrap();
    (engine, told)
}

fn sum(told: &Told) -> Swept {
    told.lock().unwrap().iter().fold(Swept::default(), |sum, swept| Swept {
        bodies: sum.bodies + swept.bodies,
        expired: sum.expired + swept.expired,
        purged: sum.purged + swept.purged,
    })
}

const LONG: Duration = Duration::from_secs(60 * 60);

//! Bodies of any size lie in the record's row.

use idem_core::store::{End, Finish, Owning, SweepOrder, Sweeping, Swept};
use idem_core::{Fence, Keep, Ownership, StatusName, StoredResponse};

use super::{KEEP, LONG, inserts, new_claim, temporary};

/// However many transactions it takes, so that other writes get in between.
#[tokio::test]
async fn a_sweep_lets_as_many_large_bodies_go_as_it_may() {
    let (store, _directory) = temporary().await;
    let moment = std::time::Duration::ZERO;
    for key in 0..8 {
        let claim = new_claim(&format!("key-{key}"), LONG);
        assert!(inserts(&store, &claim).await);
        let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
        let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; 512 * 1024]) };
        // Of half of them only the body is over.
        let window = if key % 2 == 0 { moment } else { KEEP.window };
        let end = End::Completed { response, keep: Keep { window, body: moment, metadata: LONG } };
        store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end }).await.unwrap();
    }
    let order = |limit| SweepOrder { limit, purge_tombstones: false };
    // Milliseconds: what is over now may be over only in the next one.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(store.sweep(order(3)).await.unwrap(), Swept { bodies: 3, expired: 3, purged: 0 });
    assert_eq!(store.sweep(order(100)).await.unwrap(), Swept { bodies: 1, expired: 1, purged: 0 });
    assert_eq!(store.sweep(order(100)).await.unwrap(), Swept::default());
    for key in 0..8 {
        let record = store.record(&new_claim(&format!("key-{key}"), LONG).scope).await.unwrap().unwrap();
        let expected = if key % 2 == 0 { StatusName::Expired } else { StatusName::Completed };
        assert_eq!(record.status.name(), expected);
    }
}

//! The store in PostgreSQL.

mod again;
mod cost;
mod expanded;
mod join;
mod locks;
mod proxy;
mod races;
mod server;
mod standby;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use idem_cluster::{Cluster, Database};
use idem_core::store::{Claimed, Claiming, End, Finish, NewClaim};
use idem_core::{CommandHash, Fence, Keep, OwnerToken, Ownership, Scope, StoreError, StoredResponse, Tenant};
use idem_sqlx::{PgOptions, PgStore};
use tokio::sync::Barrier;

mod conformance {
    idem_core::conformance!(crate::stores::block_on, super::temporary());
}

mod operating {
    crate::stores::operating::operating!(super::temporary());
}

mod registering {
    crate::stores::registering::registering!(super::temporary());
}

crate::stores::cleaning::cleaning!(temporary());
crate::stores::lasting::lasting!(temporary(), async |database: &Database| {
    database.run("UPDATE idem.idempotency_requests SET sweep_at = '-infinity'").await;
});

/// A store in a database that is gone with the test.
pub(super) async fn temporary() -> (PgStore, Database) {
    let database = Cluster::shared().database().await;
    let store = PgStore::open(options(&database)).await.expect("a store");
    (store, database)
}

/// A slow machine must not decide a test: nothing times out.
fn options(database: &Database) -> PgOptions {
    let long = Duration::from_secs(60);
    PgOptions::from(database.options()).lock_timeout(long).statement_timeout(long).acquire_timeout(long)
}

fn new_claim(key: &str, lease: Duration) -> NewClaim {
    let tenant = Tenant::new("tenant-1").unwrap();
    NewClaim {
        scope: Scope::new(tenant, "create_payment", key.parse().unwrap()),
        hash: CommandHash::from_parts(1, 1, [7; 32]).unwrap(),
        owner: OwnerToken::random(),
        lease,
    }
}

async fn inserts(store: &PgStore, claim: &NewClaim) -> bool {
    match store.claim(claim).await {
        Ok(Claimed::Inserted { .. }) => true,
        Ok(Claimed::Found(_)) => false,
        other => panic!("{other:?}"),
    }
}

fn ownership(claim: &NewClaim) -> Ownership {
    Ownership { scope: claim.scope.clone(), fence: Fence::FIRST, owner: claim.owner }
}

fn finish(end: End) -> Finish {
    Finish { closed: Vec::new(), resource: None, end }
}

fn completed(body: impl Into<Vec<u8>>) -> End {
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(body.into()) };
    End::Completed { response, keep: KEEP }
}

/// The code of the [`idem_sqlx::Error`] behind a store's error.
fn cause(error: &StoreError) -> &'static str {
    let source = std::error::Error::source(error).expect("a cause");
    source.downcast_ref::<idem_sqlx::Error>().expect("idem's own").code()
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

const LONG: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const KEEP: Keep = Keep { window: DAY, body: DAY, metadata: DAY };

//! The store in PostgreSQL.

use std::time::Duration;

use idem_core::store::{Claimed, Claiming, NewClaim};
use idem_core::{CommandHash, OwnerToken, Scope, Tenant};
use idem_sqlx::{PgOptions, PgStore};

use crate::support::postgres::{Cluster, Database};

mod conformance {
    idem_core::conformance!(crate::stores::block_on, super::temporary());
}

/// A store in a database that is gone with the test.
async fn temporary() -> (PgStore, Database) {
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

const LONG: Duration = Duration::from_secs(60 * 60);

//! The store in an SQLite file.

mod bodies;
mod expanded;
mod files;
mod joining;
mod processes;
mod races;

use std::time::Duration;

use idem_core::store::{Claimed, Claiming, NewClaim};
use idem_core::{CommandHash, Keep, OwnerToken, Scope, StoreError, Tenant};
use idem_sqlx::SqliteStore;

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
crate::stores::lasting::lasting!(temporary(), async |_| ());

/// A store in a directory that is gone with the test.
pub(super) async fn temporary() -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path().join("idem.db")).await.expect("a store");
    (store, directory)
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

async fn inserts(store: &SqliteStore, claim: &NewClaim) -> bool {
    match store.claim(claim).await {
        Ok(Claimed::Inserted { .. }) => true,
        Ok(Claimed::Found(_) | Claimed::Held) => false,
        Err(error) => panic!("{}", told(&error)),
    }
}

/// An error with its causes, for a test's message.
fn told(error: &StoreError) -> String {
    let mut text = format!("{} {error}", error.code());
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The code of the [`idem_sqlx::Error`] behind a store's error.
fn cause(error: &StoreError) -> &'static str {
    let source = std::error::Error::source(error).expect("a cause");
    source.downcast_ref::<idem_sqlx::Error>().expect("idem's own").code()
}

const LONG: Duration = Duration::from_secs(60 * 60);
const KEEP: Keep = Keep { window: LONG, body: LONG, metadata: LONG };

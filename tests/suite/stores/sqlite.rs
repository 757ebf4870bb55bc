//! The store in an SQLite file.

use idem_sqlx::SqliteStore;

mod conformance {
    idem_core::conformance!(crate::stores::block_on, super::temporary());
}

/// A store in a directory that is gone with the test.
async fn temporary() -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path().join("idem.db")).await.expect("a store");
    (store, directory)
}

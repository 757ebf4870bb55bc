//! The store in memory.

use std::sync::{Arc, Mutex};

use idem_core::store::TxStore;
use idem_core::{Failure, MemoryStore, MemoryTx};

use crate::stores::joining::{Rows, joining};

mod conformance {
    use idem_core::MemoryStore;

    idem_core::conformance!(crate::stores::block_on, async { (MemoryStore::new(), ()) });
}

mod operating {
    crate::stores::operating::operating!(async { (idem_core::MemoryStore::new(), ()) });
}

mod registering {
    crate::stores::registering::registering!(async { (idem_core::MemoryStore::new(), ()) });
}

joining!(Beside);

crate::stores::cleaning::cleaning!(async { (MemoryStore::new(), ()) });
crate::stores::lasting::lasting!(async { (MemoryStore::new(), ()) }, async |_| ());

/// A list beside the store; a transaction knows where its own is.
struct Beside {
    store: MemoryStore,
    rows: Arc<Mutex<Vec<String>>>,
}

impl Rows for Beside {
    type Store = MemoryStore;

    async fn fresh() -> Self {
        Self { store: MemoryStore::new(), rows: Arc::default() }
    }

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    async fn begin(&self) -> MemoryTx {
        self.store.begin().await.unwrap()
    }

    async fn insert(&self, tx: &mut MemoryTx, row: &'static str) -> Result<(), Failure> {
        let rows = Arc::clone(&self.rows);
        tx.on_commit(move || rows.lock().unwrap().push(row.to_owned()));
        Ok(())
    }

    async fn doom(_: &mut MemoryTx) -> bool {
        false
    }

    async fn rows(&self) -> Vec<String> {
        let mut rows = self.rows.lock().unwrap().clone();
        rows.sort();
        rows
    }
}

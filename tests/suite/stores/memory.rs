//! The store in memory.

use idem_core::MemoryStore;

idem_core::conformance!(super::block_on, async { (MemoryStore::new(), ()) });

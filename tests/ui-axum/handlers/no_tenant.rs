use idem_axum::{Idem, MemoryStore};

fn main() {
    let _ = Idem::builder(MemoryStore::new()).build();
}

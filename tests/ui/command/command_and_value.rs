use idem_core::{Canonical, IdempotentCommand};

#[derive(Canonical, IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

fn main() {}

use std::time::Instant;

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    at: Instant,
}

fn main() {}

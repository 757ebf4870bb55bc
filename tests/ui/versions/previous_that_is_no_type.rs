use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, previous = "PayV1")]
struct Pay {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 2, previous)]
struct Refund {
    cents: u64,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, writes = 3)]
struct Pay {
    cents: u64,
}

fn main() {}

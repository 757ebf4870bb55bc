use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, oldest = 3)]
struct Pay {
    cents: u64,
}

fn main() {}

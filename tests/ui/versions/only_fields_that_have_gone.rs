use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, oldest = 1)]
struct Pay {
    #[idem(until = 1)]
    cents: u64,
}

fn main() {}

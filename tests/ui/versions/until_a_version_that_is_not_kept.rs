use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 3, oldest = 2)]
struct Pay {
    cents: u64,
    #[idem(until = 1)]
    tip: u64,
}

fn main() {}

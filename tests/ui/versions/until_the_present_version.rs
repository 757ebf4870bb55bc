use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, oldest = 1)]
struct Pay {
    cents: u64,
    #[idem(until = 2)]
    tip: u64,
}

fn main() {}

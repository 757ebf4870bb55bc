use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "", version = 1)]
struct Empty {
    amount: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "create payment", version = 1)]
struct Blank {
    amount: u64,
}

fn main() {}

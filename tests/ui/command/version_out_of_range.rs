use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 0)]
struct Zero {
    amount: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = "1")]
struct Text {
    amount: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2147483648)]
struct Large {
    amount: u64,
}

fn main() {}

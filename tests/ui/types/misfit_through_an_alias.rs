use idem_core::{Canonical, IdempotentCommand};

type Count = Box<u32>;

#[derive(Canonical)]
struct Amount(Count);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(uppercase)]
    count: Count,
    #[idem(uppercase)]
    amount: Amount,
}

fn main() {}

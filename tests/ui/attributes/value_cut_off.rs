use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation =, version = 1 +)]
struct Pay {
    #[idem(default = -)]
    fee: i64,
    #[idem(with = money::, trim)]
    amount: u64,
    #[idem(decimal(scale = ))]
    rate: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, previous = old::)]
struct Later {
    fee: i64,
}

fn main() {}

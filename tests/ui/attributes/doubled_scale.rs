use idem_core::IdempotentCommand;
use rust_decimal::Decimal;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(decimal(scale = 2, scale = 3))]
    amount: Decimal,
}

fn main() {}

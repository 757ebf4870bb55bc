use idem_core::IdempotentCommand;
use rust_decimal::Decimal;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(decimal(scale = 2, round = "up"))]
    a: Decimal,
    #[idem(decimal(round = "half_up"))]
    b: Decimal,
    #[idem(decimal(scale = 2, round = half_up))]
    c: Decimal,
}

fn main() {}

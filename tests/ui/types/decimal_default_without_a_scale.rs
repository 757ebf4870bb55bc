use idem_core::IdempotentCommand;
use rust_decimal::Decimal;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default = "0.00")]
    without_scale: Decimal,
}

fn main() {}

use idem_core::IdempotentCommand;
use rust_decimal::Decimal;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(decimal(scale = 2), default = "1,50")]
    no_number: Decimal,
}

fn main() {}

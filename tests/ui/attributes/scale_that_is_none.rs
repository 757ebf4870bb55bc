use idem_core::IdempotentCommand;
use rust_decimal::Decimal;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(decimal(scale = -1))]
    a: Decimal,
    #[idem(decimal(scale = 29))]
    b: Decimal,
    #[idem(decimal(scale = 2.5))]
    c: Decimal,
    #[idem(decimal(scale = "2"))]
    d: Decimal,
    #[idem(decimal)]
    e: Decimal,
    #[idem(decimal())]
    f: Decimal,
    #[idem(decimal = 2)]
    g: Decimal,
}

fn main() {}

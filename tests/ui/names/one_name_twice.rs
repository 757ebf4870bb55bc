use idem_core::{Canonical, IdempotentCommand};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    amount: u64,
    #[idem(rename = "amount")]
    total: u64,
}

#[derive(Canonical)]
#[idem(rename_all = "lowercase")]
enum Method {
    CardPay,
    Cardpay,
}

fn main() {}

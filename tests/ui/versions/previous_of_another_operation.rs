use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 1)]
struct PayV1 {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, previous = PayV1)]
struct Pay {
    cents: u64,
}

impl From<&Pay> for PayV1 {
    fn from(pay: &Pay) -> Self {
        Self { cents: pay.cents }
    }
}

impl From<PayV1> for Pay {
    fn from(old: PayV1) -> Self {
        Self { cents: old.cents }
    }
}

fn main() {}

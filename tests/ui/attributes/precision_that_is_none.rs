use std::time::SystemTime;

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(timestamp)]
    a: SystemTime,
    #[idem(timestamp())]
    b: SystemTime,
    #[idem(timestamp(precision = "ns"))]
    c: SystemTime,
    #[idem(timestamp(precison = "ms"))]
    d: SystemTime,
}

fn main() {}

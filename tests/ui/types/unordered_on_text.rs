use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(unordered)]
    a: String,
    #[idem(digest)]
    b: String,
    #[idem(timestamp(precision = "ms"))]
    c: u64,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(uppercase, lowercase)]
    a: String,
    #[idem(verbatim, trim)]
    b: String,
    #[idem(decimal(scale = 2), uppercase)]
    c: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(exclude)]
    #[idem(exclude)]
    a: String,
    #[idem(trim)]
    #[idem(verbatim)]
    b: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem]
    a: String,
    #[idem = "x"]
    b: String,
    #[idem()]
    c: String,
}

fn main() {}

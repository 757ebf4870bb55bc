use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    id: u64,
    #[idem(exclude, default = "x")]
    a: String,
    #[idem(uppercase, exclude)]
    b: String,
}

fn main() {}

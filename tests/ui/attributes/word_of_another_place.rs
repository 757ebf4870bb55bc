use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1, uppercase)]
struct Pay {
    #[idem(version = 2)]
    currency: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(decimal(scale = 2))]
    amount: Option<String>,
}

fn main() {}

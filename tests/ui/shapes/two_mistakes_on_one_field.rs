use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(uppercas, trim = 1)]
    #[idem(exclude exclude)]
    a: String,
}

fn main() {}

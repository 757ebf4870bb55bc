use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default = 1 + ; 2, exclude)]
    fee: i64,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(exclude = true)]
    a: String,
    #[idem(uppercase(ascii))]
    b: String,
}

fn main() {}

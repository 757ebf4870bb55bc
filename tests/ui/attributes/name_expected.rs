use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem("exclude")]
    a: String,
    #[idem(= 2)]
    b: String,
    #[idem(, exclude)]
    c: String,
}

fn main() {}

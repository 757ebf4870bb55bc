use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(uppercase default = "EUR")]
    currency: String,
    #[idem("exclude")]
    b: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(unordered, uppercase)]
    a: Vec<String>,
    #[idem(digest, unordered)]
    b: Vec<u8>,
    #[idem(trim, float)]
    c: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(uppercase)]
    count: u32,
    #[idem(uppercase)]
    counts: Option<Vec<u32>>,
}

fn main() {}

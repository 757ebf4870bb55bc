use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    id: u64,
    #[idem(exclude, exclude)]
    trace_id: String,
    #[idem(uppercase)]
    #[idem(uppercase)]
    currency: String,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, oldest = 1)]
struct Pay(u64, #[idem(until = 1)] u64, u64);

fn main() {}

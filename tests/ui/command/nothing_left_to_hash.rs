use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "ping", version = 1)]
struct Ping;

#[derive(IdempotentCommand)]
#[idem(operation = "trace", version = 1)]
struct Trace {
    #[idem(exclude)]
    id: String,
}

fn main() {}

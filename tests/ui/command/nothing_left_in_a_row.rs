use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "ping", version = 1)]
struct Ping;

#[derive(IdempotentCommand)]
#[idem(operation = "pong", version = 1)]
struct Pong(#[idem(exclude)] u64);

fn main() {}

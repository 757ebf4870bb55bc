use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay<T> {
    v: T,
}

struct Opaque;

fn hash(pay: &Pay<Opaque>) {
    pay.command_hash();
}

fn main() {}

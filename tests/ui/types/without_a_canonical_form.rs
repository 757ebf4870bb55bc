use idem_core::IdempotentCommand;

struct Session;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    session: Session,
}

fn main() {}

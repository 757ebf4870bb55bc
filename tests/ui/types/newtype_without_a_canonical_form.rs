use idem_core::{Canonical, IdempotentCommand};

struct Session;

#[derive(Canonical)]
struct Token(Session);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    token: Option<Token>,
}

fn main() {}

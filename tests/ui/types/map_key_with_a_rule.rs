use idem_core::{Canonical, IdempotentCommand};

#[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
struct Code(#[idem(uppercase)] String);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    rates: std::collections::BTreeMap<Code, u8>,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    flags: std::collections::BTreeMap<bool, u8>,
}

fn main() {}

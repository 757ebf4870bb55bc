use idem_core::Canonical;

#[derive(Canonical)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    amount: u64,
}

fn main() {}

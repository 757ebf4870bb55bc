use idem_core::Canonical;

#[derive(Canonical)]
#[idem(oldest = 1, writes = 1, previous = Old)]
struct Item {
    sku: u64,
}

fn main() {}

use idem_core::Canonical;

#[derive(Canonical)]
struct Item {
    sku: u64,
    #[idem(until = 1)]
    count: u64,
}

fn main() {}

use idem_core::Canonical;

#[derive(Canonical)]
#[idem(rename_all = "spaced out words")]
struct Item {
    sku: u64,
}

#[derive(Canonical)]
#[idem(rename_all = snake_case)]
struct Other {
    sku: u64,
}

fn main() {}

use idem_core::Canonical;

#[derive(Canonical)]
#[idem(crate = "nowhere::idem")]
struct Item {
    sku: String,
}

fn main() {}

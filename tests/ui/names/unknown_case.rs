use idem_core::Canonical;

#[derive(Canonical)]
#[idem(rename_all = "snakecase")]
struct Item {
    sku: String,
}

fn main() {}

use idem_core::{Canonical, IdempotentCommand};

#[derive(Canonical)]
struct Item {
    sku: String,
}

fn run<C: IdempotentCommand>(_: C) {}

fn main() {
    run(Item { sku: String::new() });
}

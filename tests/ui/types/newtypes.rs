use idem_core::{Canonical, IdempotentCommand};

#[derive(IdempotentCommand)]
#[idem(operation = "rate", version = 1)]
struct Rate(f64);

#[derive(Canonical)]
struct Code(#[idem(uppercase)] u32);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    code: Code,
    codes: Vec<Code>,
    rate: Rate,
}

// What is wrong with them is said once, and not where they are used.
fn main() {
    let _ = Rate(1.0).command_hash();
    let _ = Pay { code: Code(1), codes: vec![], rate: Rate(1.0) }.command_hash();
}

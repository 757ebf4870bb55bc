use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
struct Pay {
    amount: u64,
}

// The command is one all the same: no second wave from where it is used.
fn main() {
    let _ = Pay { amount: 1 }.command_hash();
}

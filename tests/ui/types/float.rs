use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    amount: f64,
    rates: Vec<f32>,
}

fn main() {}

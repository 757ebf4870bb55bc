use idem_core::IdempotentCommand;

type Amount = Option<f64>;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    amount: Amount,
    map: std::collections::BTreeMap<String, Amount>,
}

fn main() {}

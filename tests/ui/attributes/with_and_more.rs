use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(with = "Cents", uppercase)]
    currency: String,
    #[idem(with = "Cents", default = 0)]
    fee: u8,
    #[idem(with = "Cents", exclude)]
    trace: String,
}

fn main() {}

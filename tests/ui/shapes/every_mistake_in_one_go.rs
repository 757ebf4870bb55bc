use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operatoin = "pay", version = 1)]
struct Pay {
    #[idem(exlude)]
    trace_id: String,
    #[idem(uppercase = "yes")]
    currency: String,
}

fn command<C: IdempotentCommand>() {}

fn main() {
    command::<Pay>();
}

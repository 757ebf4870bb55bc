use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(exlude)]
    trace_id: String,
    #[idem(shiny)]
    color: String,
}

fn main() {}

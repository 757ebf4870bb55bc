use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default = "web")]
    channel: Option<Option<String>>,
}

fn main() {}

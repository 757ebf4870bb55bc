use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default = 1)]
    channel: Option<String>,
    #[idem(default = "1")]
    count: u32,
    #[idem(default = [])]
    flag: bool,
}

fn main() {}

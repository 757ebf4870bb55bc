use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default)]
    a: String,
    #[idem(default =)]
    b: String,
    #[idem(rename)]
    c: String,
    #[idem(rename = 1)]
    d: String,
    #[idem(default = ["a"])]
    e: Vec<String>,
}

fn main() {}

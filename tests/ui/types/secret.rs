use idem_core::IdempotentCommand;
use secrecy::SecretString;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    token: SecretString,
    password: Option<secrecy::SecretBox<str>>,
}

fn main() {}

use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(with = "a b")]
    spaced: u8,
    #[idem(with = 5)]
    number: u8,
    #[idem(with)]
    bare: u8,
}

fn main() {}

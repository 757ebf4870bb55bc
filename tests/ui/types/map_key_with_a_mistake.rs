use std::collections::{BTreeMap, HashMap};

use idem_core::{Canonical, IdempotentCommand};

#[derive(Canonical)]
enum Account {
    #[idem(renam = "savings")]
    Savings,
    Current,
}

#[derive(Canonical)]
struct Iban(#[idem(verbatm)] String);

#[derive(IdempotentCommand)]
#[idem(operation = "split", version = 1)]
struct Split {
    shares: BTreeMap<Account, u32>,
    owners: HashMap<Iban, String>,
}

fn main() {}

use idem_core::Canonical;

#[derive(Canonical)]
#[idem(crate = "my sdk")]
struct Text {
    v: u64,
}

#[derive(Canonical)]
#[idem(crate = 1)]
struct Number {
    v: u64,
}

#[derive(Canonical)]
#[idem(crate)]
struct Alone {
    v: u64,
}

fn main() {}

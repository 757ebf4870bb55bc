use idem_core::Canonical;

#[derive(Canonical)]
#[idem(bound = "T is hashed")]
struct Held<T> {
    value: T,
}

#[derive(Canonical)]
#[idem(bound)]
struct Other<T> {
    value: T,
}

fn main() {}

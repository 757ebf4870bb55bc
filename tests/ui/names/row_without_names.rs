use idem_core::Canonical;

#[derive(Canonical)]
struct Pair(#[idem(default = 1)] u8, #[idem(rename = "b")] u8);

fn main() {}

use idem_core::Canonical;

#[derive(serde::Deserialize, Canonical)]
struct Pair(u64, #[serde(skip)] u64);

fn main() {}

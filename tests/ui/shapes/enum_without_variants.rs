use idem_core::Canonical;

#[derive(Canonical)]
enum Never {}

fn main() {}

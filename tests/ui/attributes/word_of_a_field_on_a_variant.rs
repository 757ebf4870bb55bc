use idem_core::Canonical;

#[derive(Canonical)]
enum Method {
    #[idem(exclude)]
    Cash,
    #[idem(renam = "card")]
    Card(String),
}

fn main() {}

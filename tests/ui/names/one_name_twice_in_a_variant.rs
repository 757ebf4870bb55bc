use idem_core::Canonical;

#[derive(Canonical)]
enum Method {
    Bank {
        iban: String,
        #[idem(rename = "iban")]
        bic: String,
    },
}

fn main() {}

use idem_core::Canonical;

#[derive(Canonical)]
enum Method {
    Card(#[idem(default = 1)] u8),
    Split(u8, #[idem(rename = "b")] u8),
    Bank {
        #[idem(excluded)]
        iban: String,
    },
}

fn main() {}

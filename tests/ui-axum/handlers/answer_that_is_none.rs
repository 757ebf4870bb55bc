use axum::response::Response;
use idem_axum::{Idempotent, IdempotentCommand};

#[derive(serde::Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

struct Paid;

async fn pay(payment: Idempotent<Pay>) -> Response {
    payment.execute(|_, _| async { Ok(Paid) }).await
}

fn main() {}

use axum::Json;
use axum::extract::Path;
use axum::response::Response;
use idem_axum::{Idem, Idempotent, IdempotentCommand};

#[derive(serde::Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    account: u64,
    cents: u64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    cents: u64,
}

#[axum::debug_handler(state = Idem)]
async fn pay(payment: Idempotent<Pay, (Path<u64>, Json<Body>)>) -> Response {
    payment.execute(|_, _| async { Ok(()) }).await
}

fn main() {}

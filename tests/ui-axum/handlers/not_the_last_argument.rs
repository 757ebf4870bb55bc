use axum::http::HeaderMap;
use axum::response::Response;
use idem_axum::{Idem, Idempotent, IdempotentCommand};

#[derive(serde::Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

#[axum::debug_handler(state = Idem)]
async fn pay(payment: Idempotent<Pay>, _headers: HeaderMap) -> Response {
    payment.execute(|_, _| async { Ok(()) }).await
}

fn main() {}

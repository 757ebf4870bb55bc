use axum::Router;
use axum::response::Response;
use axum::routing::post;
use idem_axum::{Idem, Idempotent};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Pay {
    cents: u64,
}

async fn pay(payment: Idempotent<Pay>) -> Response {
    payment.execute(|payment, _| async move { Ok(payment.cents.to_string()) }).await
}

fn main() {
    let _: Router<Idem> = Router::new().route("/", post(pay));
}

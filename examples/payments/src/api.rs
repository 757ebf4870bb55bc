//! The HTTP side: routes and handlers.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use idem_axum::{Claim, Failure, Idempotent, IntoReply, Reply};
use serde_json::json;

use crate::ledger::LedgerError;
use crate::merchant::Merchant;
use crate::metrics;
use crate::payment::CreatePayment;
use crate::provider::{Charge, Trouble};
use crate::service::App;

/// Everything the service answers.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/payments", post(create_payment))
        .route("/payments/{id}", get(show_payment))
        .route("/metrics", get(async || metrics::numbers().render()))
        .route("/provider/charges", get(show_charges))
        .route("/provider/next", put(prepare_provider))
        .with_state(app)
}

async fn create_payment(State(app): State<App>, payment: Idempotent<CreatePayment>) -> Result<Response, Response> {
    let payment = payment.check(async |payment, _| payment.validate().map_err(invalid)).await?;
    let work = async move |payment: CreatePayment, claim: Claim| {
        let id = claim.derived_id("pay");
        claim.makes("payment", &id).await;
        let merchant = claim.scope().tenant().as_str();
        app.ledger.insert_or_resume(&id, merchant, claim.command_hash(), &payment).await.map_err(refuse)?;
        // Announced before it leaves, and never made twice: this is the line that costs money.
        let charge = claim.call("charge", |key| app.provider.charge(&payment, key)).await?;
        let settled = app.ledger.settle(&id, &charge).await?;
        Ok(match charge {
            Charge::Approved { .. } => {
                (StatusCode::CREATED, [(header::LOCATION, format!("/payments/{id}"))], Json(settled)).into_reply()
            }
            Charge::Declined { reason } => {
                (StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": reason, "payment": settled }))).into_reply()
            }
        })
    };
    Ok(payment.execute(work).await)
}

fn invalid(reason: &str) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "error": reason }))).into_response()
}

/// A key that was used again after its record was gone is a conflict that the client has to solve; a broken database
/// is not.
fn refuse(error: LedgerError) -> Failure {
    match error {
        LedgerError::OtherCommand(_) => {
            let body = json!({ "error": "this idempotency key has already made another payment" });
            Failure::replayable(Reply::status(409).header("content-type", "application/json").body(body.to_string()))
        }
        LedgerError::Database(_) => error.into(),
    }
}

async fn show_payment(State(app): State<App>, merchant: Merchant, Path(id): Path<String>) -> Response {
    match app.ledger.find(&id, merchant.name()).await {
        Ok(Some(payment)) => Json(payment).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => broken(&error),
    }
}

async fn show_charges(State(app): State<App>) -> Response {
    match app.provider.charges().await {
        Ok(charges) => Json(charges).into_response(),
        Err(error) => broken(&error),
    }
}

async fn prepare_provider(State(app): State<App>, Json(trouble): Json<Trouble>) -> StatusCode {
    app.provider.prepare(trouble);
    StatusCode::NO_CONTENT
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Response {
    tracing::error!(error, "a database failed");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

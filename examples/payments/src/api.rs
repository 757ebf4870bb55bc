//! The HTTP side: routes and handlers.

pub mod provider;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use idem_axum::{Claim, Failure, Idempotent, IntoReply, Reply, Unwritable};
use idem_sqlx::webhook::WebhookError;
use serde_json::json;

use crate::events;
use crate::ledger::{self, LedgerError, Payment};
use crate::merchant::Merchant;
use crate::metrics;
use crate::office::Heard;
use crate::payment::CreatePayment;
use crate::provider::{Charge, ProviderError};
use crate::service::App;
use crate::transfer::CreateTransfer;

/// Everything the service answers.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/payments", get(show_payments).post(create_payment))
        .route("/payments/{id}", get(show_payment))
        .route("/payments/{id}/events", get(show_events))
        .route("/transfers", post(create_transfer))
        .route("/metrics", get(async || metrics::numbers().render()))
        .route("/provider/charges", get(provider::show_charges))
        .route("/provider/next", get(provider::is_prepared).put(provider::prepare))
        .route("/provider/silence", put(provider::silence))
        .route("/provider/webhook", post(provider::hear))
        .with_state(app)
}

async fn create_payment(State(app): State<App>, payment: Idempotent<CreatePayment>) -> Result<Response, Response> {
    let payment = payment.check(async |payment, _| payment.validate().map_err(invalid)).await?;
    let work = async move |payment: CreatePayment, claim: Claim| {
        let (id, hash) = (claim.derived_id("pay"), claim.command_hash());
        claim.makes("payment", &id).await;
        let merchant = claim.scope().tenant().as_str();
        // The payment is written down, and its charge announced, before money moves.
        let mut tx = app.ledger.begin().await?;
        ledger::insert_or_resume(&mut tx, &id, merchant, hash, &payment).await.map_err(refuse)?;
        let charge = claim.open_in(&mut tx, "charge").await?;
        tx.commit().await?;
        // Never made twice: this is the line that costs money.
        let charge: Charge = charge.run(|key| app.provider.charge(payment.order(key, hash))).await?;
        // Payment, ledger, event and the answer to every later request: all of it, or nothing.
        let mut tx = app.ledger.begin().await?;
        let payment = ledger::settle(&mut tx, &id, &charge).await?;
        events::tell(&mut tx, &payment).await?;
        Ok(Reply::from(claim.commit(tx, settled(&payment, &charge)?).await?))
    };
    Ok(payment.execute(work).await)
}

/// The answer for a payment of which the provider has spoken.
pub(crate) fn settled(payment: &Payment, charge: &Charge) -> Result<Reply, Unwritable> {
    match charge {
        Charge::Approved { .. } => {
            let location = [(header::LOCATION, format!("/payments/{}", payment.id))];
            (StatusCode::CREATED, location, Json(json!(payment))).into_reply()
        }
        Charge::Declined { reason } => {
            (StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": reason, "payment": payment }))).into_reply()
        }
    }
}

/// Two charges, and a third where the second is declined. Each is announced, and its outcome kept, by itself: an attempt
/// that comes after a crash makes those that are not known to be made.
async fn create_transfer(State(app): State<App>, transfer: Idempotent<CreateTransfer>) -> Response {
    let work = async move |transfer: CreateTransfer, claim: Claim| {
        let (id, hash, provider) = (claim.derived_id("tr"), claim.command_hash(), &app.provider);
        let debit: Charge = claim.call("debit", |key| provider.charge(transfer.debit(key, hash))).await?;
        if let Charge::Declined { reason } = debit {
            return Ok((StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": reason }))));
        }
        let credit: Charge = claim.call("credit", |key| provider.charge(transfer.credit(key, hash))).await?;
        if let Charge::Declined { reason } = credit {
            let refund: Charge = claim.call("refund", |key| provider.charge(transfer.refund(key, hash))).await?;
            return Ok((StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": reason, "refund": refund }))));
        }
        Ok::<_, Failure>((StatusCode::CREATED, Json(json!({ "id": id, "debit": debit, "credit": credit }))))
    };
    transfer.execute(work).await
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

async fn show_payments(State(app): State<App>, merchant: Merchant) -> Result<Json<Vec<Payment>>, Broken> {
    Ok(Json(app.ledger.list(merchant.name()).await?))
}

async fn show_payment(
    State(app): State<App>,
    merchant: Merchant,
    Path(id): Path<String>,
) -> Result<Json<Payment>, Response> {
    let found = app.ledger.find(&id, merchant.name()).await.map_err(|error| Broken::from(error).into_response())?;
    found.map(Json).ok_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// What others have heard of a payment.
async fn show_events(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Heard>, Broken> {
    Ok(Json(app.office.heard(&id).await?))
}

/// A database failed where nothing is at stake.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the ledger's database failed")]
    Ledger(#[from] sqlx::Error),
    #[error("the provider failed")]
    Provider(#[from] ProviderError),
    #[error("a webhook could not be kept")]
    Webhook(#[from] WebhookError),
}

impl IntoResponse for Broken {
    fn into_response(self) -> Response {
        tracing::error!(error = &self as &dyn std::error::Error, "a database failed");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

//! The provider's doors: what it tells the service, and how a visitor makes it fail.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use idem_core::store::Evidence;
use idem_core::{CallState, DownstreamKey};
use idem_sqlx::inbox::{OnceError, Seen};
use idem_sqlx::webhook::{self, Secret, WebhookError};
use serde::{Deserialize, Serialize};

use crate::api::Broken;
use crate::provider::{Charge, Made, Trouble};
use crate::service::App;

/// What the provider tells of a charge when it is booked, whoever has stopped waiting for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    /// The event's own id.
    pub event: String,
    /// The key that the charge was made under.
    pub key: String,
    /// What it came to.
    pub charge: Charge,
}

/// What provider and service have agreed on, and sign with.
pub const SECRET: &str = "provider-test-secret";

/// The header that holds the signature, with the moment it was made.
pub const SIGNATURE: &str = "provider-signature";

/// Money may hang on it, so it is kept before the provider is told that it arrived; the worker does the rest. An event that
/// comes again has no second effect, and one that somebody has kept and sends later has none. One about a call that is not
/// known here is not marked: the provider sends it again, and the call may be announced by then.
pub(super) async fn hear(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Result<StatusCode, Broken> {
    let signature = headers.get(SIGNATURE).and_then(|sent| sent.to_str().ok()).unwrap_or_default();
    let secret = Secret::new(SECRET).expect("it is not empty");
    let Ok(signed_at) = secret.verify(signature, &body) else { return Ok(StatusCode::UNAUTHORIZED) };
    let read =
        serde_json::from_slice(&body).and_then(|notice: Notice| Ok((serde_json::to_vec(&notice.charge)?, notice)));
    let Ok((outcome, notice)) = read else { return Ok(StatusCode::UNPROCESSABLE_ENTITY) };
    let key = DownstreamKey::from_stored(notice.key);
    let evidence = Evidence { key, source: "webhook".to_owned(), state: CallState::Applied(outcome) };
    let tx = app.ledger.begin().await?;
    let heard = webhook::once(tx, &app.webhooks, &notice.event, signed_at, |mut tx| async move {
        if app.store.evidence_in(&mut tx, &evidence).await? { Ok((tx, ())) } else { Err(UnknownCall.into()) }
    });
    Ok(match heard.await {
        Ok(Seen::First(()) | Seen::Again) => StatusCode::NO_CONTENT,
        Err(WebhookError::Once(OnceError::Work(error))) if error.is::<UnknownCall>() => StatusCode::NOT_FOUND,
        Err(WebhookError::TooOld { .. } | WebhookError::TooNew { .. }) => StatusCode::BAD_REQUEST,
        Err(error) => return Err(error.into()),
    })
}

#[derive(Debug, thiserror::Error)]
#[error("no call has that key")]
struct UnknownCall;

pub(super) async fn show_charges(State(app): State<App>) -> Result<Json<Vec<Made>>, Broken> {
    Ok(Json(app.provider.charges().await?))
}

pub(super) async fn prepare(State(app): State<App>, Json(trouble): Json<Trouble>) -> StatusCode {
    app.provider.prepare(trouble);
    StatusCode::NO_CONTENT
}

pub(super) async fn is_prepared(State(app): State<App>) -> Json<bool> {
    Json(app.provider.is_prepared())
}

pub(super) async fn silence(State(app): State<App>, Json(silent): Json<bool>) -> StatusCode {
    app.provider.be_silent(silent);
    StatusCode::NO_CONTENT
}

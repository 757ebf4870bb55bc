//! The provider's doors: what it tells the service, and how a visitor makes it fail.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use idem_core::store::Evidence;
use idem_core::{CallState, DownstreamKey};
use serde::{Deserialize, Serialize};

use crate::api::Broken;
use crate::provider::{Charge, Made, Trouble};
use crate::service::App;

/// What the provider tells of a charge when it is booked, whoever has stopped waiting for it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The key that the charge was made under.
    pub key: String,
    /// What it came to.
    pub charge: Charge,
}

/// What provider and service have agreed on. (A real provider signs its notices, with a date.)
pub const SECRET: &str = "provider-test-secret";

/// The header that shows it.
pub const SECRET_HEADER: &str = "provider-secret";

/// Money may hang on it, so it is kept before the provider is told that it arrived; the worker does the rest.
pub(super) async fn hear(
    State(app): State<App>,
    headers: HeaderMap,
    Json(notice): Json<Notice>,
) -> Result<StatusCode, Broken> {
    if headers.get(SECRET_HEADER).is_none_or(|sent| sent != SECRET) {
        return Ok(StatusCode::UNAUTHORIZED);
    }
    let Ok(outcome) = serde_json::to_vec(&notice.charge) else { return Ok(StatusCode::UNPROCESSABLE_ENTITY) };
    let key = DownstreamKey::from_stored(notice.key);
    let evidence = Evidence { key, source: "webhook".to_owned(), state: CallState::Applied(outcome) };
    let known = app.idem.engine().evidence(&evidence).await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

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

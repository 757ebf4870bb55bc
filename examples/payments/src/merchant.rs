//! Who asks: an API key names a merchant, and the merchant is the tenant.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use idem_core::{InvalidTenant, Tenant};

/// An authenticated merchant. Keys may rotate, the merchant's name stays: that is what records belong to.
#[derive(Debug)]
pub struct Merchant(&'static str);

/// What a real service has in its database.
const API_KEYS: [(&str, &str); 2] = [("acme-test-key", "acme"), ("globex-test-key", "globex")];

impl<S: Sync> FromRequestParts<S> for Merchant {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let sent = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = sent.and_then(|value| value.strip_prefix("Bearer "));
        let known = API_KEYS.iter().find(|(known, _)| Some(*known) == key);
        known.map(|(_, name)| Self(name)).ok_or_else(|| {
            let hint = Json(serde_json::json!({ "error": "send Authorization: Bearer acme-test-key" }));
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], hint).into_response()
        })
    }
}

impl Merchant {
    /// The merchant's name.
    pub fn name(&self) -> &str {
        self.0
    }
}

impl TryFrom<Merchant> for Tenant {
    type Error = InvalidTenant;

    fn try_from(merchant: Merchant) -> Result<Self, InvalidTenant> {
        Self::new(merchant.0)
    }
}

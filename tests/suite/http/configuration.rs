//! States of the router, mistakes in the set-up, and what the log says of them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::post;
use idem_axum::{HasIdem, Idem, Idempotent, MemoryStore, Tenant, assert_state};
use tower::ServiceExt;
use tracing::Instrument;

use crate::http::bench::{idem, payment, unscoped};
use crate::http::command::Pay;
use crate::support::log::Log;

#[derive(Clone)]
struct App {
    idem: Idem,
    merchant: &'static str,
}

impl FromRef<App> for Idem {
    fn from_ref(app: &App) -> Self {
        app.idem.clone()
    }
}

/// Neither `Clone` nor known to `FromRef`.
struct Plain {
    idem: Idem,
}

impl HasIdem for Plain {
    fn idem(&self) -> Idem {
        self.idem.clone()
    }
}

const _: () = {
    assert_state::<Idem>();
    assert_state::<App>();
    assert_state::<Arc<App>>();
    assert_state::<Arc<Plain>>();
};

async fn tenant_of(payment: Idempotent<Pay>) -> Response {
    payment.execute(|_, claim| async move { Ok(claim.scope().tenant().as_str().to_owned()) }).await
}

async fn answer(router: Router) -> (StatusCode, String) {
    let request = Request::post("/")
        .header("idempotency-key", "k")
        .header("content-type", "application/json")
        .body(Body::from(payment().to_string()))
        .unwrap();
    let (parts, body) = router.oneshot(request).await.unwrap().into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn every_kind_of_state_serves_the_extractor() {
    let idem = || idem(MemoryStore::new()).build().unwrap();
    let app = || App { idem: idem(), merchant: "m" };
    let acme = (StatusCode::OK, "acme".to_owned());
    assert_eq!(answer(Router::new().route("/", post(tenant_of)).with_state(idem())).await, acme);
    assert_eq!(answer(Router::new().route("/", post(tenant_of)).with_state(app())).await, acme);
    assert_eq!(answer(Router::new().route("/", post(tenant_of)).with_state(Arc::new(app()))).await, acme);
    assert_eq!(
        answer(Router::new().route("/", post(tenant_of)).with_state(Arc::new(Plain { idem: idem() }))).await,
        acme
    );
}

/// The tenant that the state names.
struct OfState(&'static str);

impl FromRequestParts<App> for OfState {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, app: &App) -> Result<Self, StatusCode> {
        Ok(Self(app.merchant))
    }
}

impl TryFrom<OfState> for Tenant {
    type Error = idem_core::InvalidTenant;

    fn try_from(of: OfState) -> Result<Self, Self::Error> {
        Tenant::new(of.0)
    }
}

#[tokio::test]
async fn an_extractor_reads_the_routers_state_and_finds_its_type_by_itself() {
    let idem = unscoped(MemoryStore::new()).scope_from::<OfState, _>().build().unwrap();
    let app = App { idem, merchant: "m-7" };
    assert_eq!(answer(Router::new().route("/", post(tenant_of)).with_state(app)).await.1, "m-7");
}

#[tokio::test]
async fn an_extractor_for_another_state_is_a_configuration_error_that_names_both() {
    let log = Log::start();
    let idem = unscoped(MemoryStore::new()).scope_from::<OfState, _>().build().unwrap();
    let (status, body) = answer(Router::new().route("/", post(tenant_of)).with_state(idem)).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("IDEMPOTENCY_SCOPE_MISSING") && !body.contains("OfState"), "{body}");
    let log = log.text();
    assert!(log.contains("ERROR") && log.contains("configuration error"), "{log}");
    assert!(log.contains("OfState") && log.contains("App"), "{log}");
}

#[tokio::test]
async fn an_idempotent_that_is_dropped_is_logged_and_claims_nothing() {
    async fn forgetful(_payment: Idempotent<Pay>) -> StatusCode {
        StatusCode::OK
    }

    let log = Log::start();
    let store = MemoryStore::new();
    let idem = idem(store.clone()).build().unwrap();
    answer(Router::new().route("/", post(forgetful)).with_state(idem.clone())).await;
    assert!(store.is_empty());
    assert!(log.text().contains("dropped without `execute`"), "{}", log.text());
    let before = log.text().len();
    answer(Router::new().route("/", post(tenant_of)).with_state(idem)).await;
    assert_eq!(log.text().len(), before, "an executed one is nothing to log");
}

#[tokio::test]
async fn the_span_of_the_request_crosses_into_the_work() {
    async fn spanned(payment: Idempotent<Pay>) -> Response {
        let span = tracing::info_span!("one_request");
        let work = |_, _| async {
            tracing::info!("at work");
            Ok(())
        };
        payment.execute(work).instrument(span).await
    }

    let log = Log::start();
    let idem = idem(MemoryStore::new()).build().unwrap();
    answer(Router::new().route("/", post(spanned)).with_state(idem)).await;
    let told = log.text();
    let line = told.lines().find(|line| line.ends_with("at work")).unwrap();
    // Whatever span of the engine's stands between.
    assert!(line.contains("one_request:"), "{line}");
}

#[test]
fn a_header_of_one_caller_or_one_connection_cannot_be_kept() {
    for name in [
        "Authorization",
        "Connection",
        "Content-Length",
        "date",
        "idem-response-schema",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "proxy-connection",
        "Set-Cookie",
        "Set-Cookie2",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "www-authenticate",
        "X-Request-Id",
    ] {
        let refused = idem(MemoryStore::new()).keep_header(name).build();
        let lower = name.to_ascii_lowercase();
        assert_eq!(refused.unwrap_err(), idem_core::ConfigError::HeaderNotKept(lower));
    }
}

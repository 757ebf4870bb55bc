//! Whose key it is.

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use idem_axum::{Claim, IdempotencyKey, MemoryStore, Tenant};
use idem_core::InvalidTenant;
use serde_json::json;

use crate::http::bench::{Answer, Effects, Server, idem, pay, payment, route, unscoped};
use crate::http::command::{Pay, Refund};

/// Authenticates by a token that names its holder.
struct Merchant(String);

impl<S: Send + Sync> FromRequestParts<S> for Merchant {
    type Rejection = (StatusCode, HeaderMap, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        match parts.headers.get("authorization") {
            Some(token) => Ok(Self(token.to_str().unwrap().to_owned())),
            None => {
                let challenge = HeaderMap::from_iter([(
                    axum::http::header::WWW_AUTHENTICATE,
                    axum::http::HeaderValue::from_static("Bearer"),
                )]);
                Err((StatusCode::UNAUTHORIZED, challenge, "who are you?"))
            }
        }
    }
}

impl TryFrom<Merchant> for Tenant {
    type Error = InvalidTenant;

    fn try_from(merchant: Merchant) -> Result<Self, InvalidTenant> {
        Tenant::new(merchant.0)
    }
}

struct Bench {
    server: Server,
    store: MemoryStore,
    effects: Effects,
}

async fn bench() -> Bench {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let work = move |payment: Pay, claim: Claim| {
        happening.happen();
        async move { Ok(Json(json!({ "of": claim.scope().tenant().as_str(), "cents": payment.cents }))) }
    };
    let idem = unscoped(store.clone()).scope_from::<Merchant, ()>().build().unwrap();
    Bench { server: Server::start(pay(idem, work)).await, store, effects }
}

impl Bench {
    async fn pay(&self, token: Option<&str>, key: Option<&str>, cents: u64) -> Answer {
        let mut request = self.server.request("/pay").json(&json!({ "account": "a", "cents": cents }));
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.server.send(request).await
    }
}

#[tokio::test]
async fn one_key_of_two_tenants_is_two_payments() {
    let bench = bench().await;
    let first = bench.pay(Some("t1"), Some("k-1"), 1).await;
    let second = bench.pay(Some("t2"), Some("k-1"), 2).await;
    assert_eq!(first.json(), json!({ "of": "t1", "cents": 1 }));
    assert_eq!(second.json(), json!({ "of": "t2", "cents": 2 }));
    assert!(!second.replayed());
    let again = bench.pay(Some("t1"), Some("k-1"), 1).await;
    assert!(again.replayed());
    assert_eq!(again.json()["of"], "t1");
    assert_eq!(bench.effects.count(), 2);
}

#[tokio::test]
async fn an_anonymous_caller_gets_the_extractors_own_refusal_before_anything_else() {
    let bench = bench().await;
    bench.pay(Some("t1"), Some("k-1"), 1).await;
    // With the key of a finished payment, without a key, with a broken one: always the same, so nothing is learned.
    for key in [Some("k-1"), None, Some("a b")] {
        let answer = bench.pay(None, key, 1).await;
        assert_eq!((answer.status, answer.body.as_slice()), (401, &b"who are you?"[..]), "{key:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert!(!answer.replayed());
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (1, 1));
}

#[tokio::test]
async fn a_principal_that_is_no_tenant_is_a_configuration_error_and_no_bucket() {
    let bench = bench().await;
    for _ in 0..2 {
        let answer = bench.pay(Some(""), Some("k-1"), 1).await;
        assert_eq!((answer.status, answer.code()), (500, "IDEMPOTENCY_SCOPE_MISSING".to_owned()));
        assert_eq!(answer.json().get("next"), None);
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (0, 0));
}

#[tokio::test]
async fn one_key_for_two_operations_is_two_requests() {
    let store = MemoryStore::new();
    let idem = idem(store.clone()).build().unwrap();
    let refunds = route::<Refund, Json<Refund>, _, _, _>("/refunds", async |_, _| Ok("refunded"));
    let router = pay(idem.clone(), async |_, _| Ok("paid")).merge(refunds.with_state(idem));
    let server = Server::start(router).await;
    assert_eq!(server.post("/pay", "k-1", payment()).await.body, b"paid");
    assert_eq!(server.post("/refunds", "k-1", payment()).await.body, b"refunded");
    assert_eq!(server.post("/pay", "k-1", payment()).await.body, b"paid");
    assert_eq!(store.len(), 2);
}

#[tokio::test]
async fn a_closure_finds_the_tenant_or_refuses_in_its_own_words() {
    let find = |parts: &Parts| match parts.headers.get("x-account").map(|account| account.to_str()) {
        Some(Ok(account)) => Tenant::new(account).map_err(|_| StatusCode::FORBIDDEN),
        _ => Err(StatusCode::UNAUTHORIZED),
    };
    let store = MemoryStore::new();
    let idem = unscoped(store.clone()).scope_fn(find).build().unwrap();
    let server = Server::start(pay(idem, async |_, _| Ok("paid"))).await;
    assert_eq!(server.pay("k").await.status, 401);
    let account = |name: &str| server.request("/pay").header("idempotency-key", "k").header("x-account", name);
    assert_eq!(server.send(account("").json(&payment())).await.status, 403);
    assert_eq!(server.send(account("t1").json(&payment())).await.body, b"paid");
    let scope = idem_core::Scope::new(Tenant::new("t1").unwrap(), "pay", "k".parse::<IdempotencyKey>().unwrap());
    assert!(store.record(&scope).is_some());
    assert_eq!(store.len(), 1);
}

/// The tenant by the path of a nested router.
struct Branch(String);

impl<S: Send + Sync> FromRequestParts<S> for Branch {
    type Rejection = axum::extract::rejection::PathRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Path(values) = Path::<std::collections::HashMap<String, String>>::from_request_parts(parts, state).await?;
        Ok(Self(values.get("tenant").cloned().unwrap_or_default()))
    }
}

impl TryFrom<Branch> for Tenant {
    type Error = InvalidTenant;

    fn try_from(branch: Branch) -> Result<Self, InvalidTenant> {
        Tenant::new(branch.0)
    }
}

#[tokio::test]
async fn one_key_and_body_under_two_tenants_of_a_nested_path_is_two_payments() {
    let effects = Effects::default();
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async { Ok("paid") }
    };
    let idem = unscoped(MemoryStore::new()).scope_from::<Branch, ()>().build().unwrap();
    let router = axum::Router::new().nest("/v1/{tenant}", pay(idem.clone(), work.clone()));
    let server = Server::start(router.nest("/v2/{tenant}", pay(idem, work))).await;
    assert!(!server.post("/v1/t1/pay", "k", payment()).await.replayed());
    assert!(!server.post("/v1/t2/pay", "k", payment()).await.replayed());
    // Moving a router moves no record: the operation has a name of its own.
    assert!(server.post("/v2/t1/pay", "k", payment()).await.replayed());
    assert_eq!(effects.count(), 2);
}

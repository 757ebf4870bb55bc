//! What is asked before the claim, on every request.

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::post;
use idem_axum::{Idem, Idempotent, MemoryStore, Tenant};
use idem_core::InvalidTenant;
use serde_json::json;

use crate::http::bench::{Answer, Effects, Server, payment, unscoped};
use crate::http::command::Pay;
use crate::support::log::Log;

/// One person of a merchant. The merchant is the tenant; the person is left for the checks.
#[derive(Clone)]
struct Person(String);

impl<S: Send + Sync> FromRequestParts<S> for Person {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let name = parts.headers.get("x-person").and_then(|name| name.to_str().ok());
        let person = Self(name.ok_or(StatusCode::UNAUTHORIZED)?.to_owned());
        parts.extensions.insert(person.clone());
        Ok(person)
    }
}

impl TryFrom<Person> for Tenant {
    type Error = InvalidTenant;

    fn try_from(_: Person) -> Result<Self, InvalidTenant> {
        Tenant::new("acme")
    }
}

/// Only whose account it is may pay from it.
async fn own_account(payment: &Pay, parts: &Parts) -> Result<(), (StatusCode, &'static str)> {
    match parts.extensions.get::<Person>() {
        Some(person) if payment.account == person.0 => Ok(()),
        _ => Err((StatusCode::FORBIDDEN, "not your account")),
    }
}

struct Bench {
    server: Server,
    store: MemoryStore,
    effects: Effects,
}

impl Bench {
    async fn start() -> Self {
        let (store, effects) = (MemoryStore::new(), Effects::default());
        let happening = effects.clone();
        let handler = async move |payment: Idempotent<Pay>| -> Result<Response, Response> {
            let payment = payment.check(own_account).await?.check(async |_, _| Ok::<_, StatusCode>(())).await?;
            let work = move |_, _| {
                happening.happen();
                async { Ok((StatusCode::CREATED, "of ada")) }
            };
            Ok(payment.execute(work).await)
        };
        let idem = unscoped(store.clone()).scope_from::<Person, ()>().build().unwrap();
        let router = Router::<Idem>::new().route("/pay", post(handler)).with_state(idem);
        Self { server: Server::start(router).await, store, effects }
    }

    async fn pay(&self, person: &str) -> Answer {
        let request = self.server.request("/pay").header("idempotency-key", "k").header("x-person", person);
        self.server.send(request.json(&json!({ "account": "ada", "cents": 1 }))).await
    }
}

#[tokio::test]
async fn a_second_principal_of_the_tenant_gets_no_replay_that_he_may_not_see() {
    let bench = Bench::start().await;
    assert_eq!(bench.pay("ada").await.body, b"of ada");
    let other = bench.pay("bob").await;
    assert_eq!((other.status, other.body.as_slice(), other.replayed()), (403, &b"not your account"[..], false));
    assert!(bench.pay("ada").await.replayed());
    assert_eq!((bench.effects.count(), bench.store.len()), (1, 1));
}

#[tokio::test]
async fn a_refused_check_leaves_no_record_and_the_key_unused() {
    let log = Log::start();
    let bench = Bench::start().await;
    assert_eq!(bench.pay("bob").await.status, 403);
    assert_eq!((bench.effects.count(), bench.store.len()), (0, 0));
    assert!(!log.text().contains("dropped without"), "a refusal is no forgotten request: {}", log.text());
    let first = bench.pay("ada").await;
    assert_eq!((first.status, first.replayed()), (201, false));
}

#[tokio::test]
async fn a_later_check_refuses_too_and_a_check_sees_the_parts_as_they_came() {
    let handler = async |payment: Idempotent<Pay>| -> Result<Response, Response> {
        let payment = payment.check(async |_, _| Ok::<_, StatusCode>(())).await?;
        let asked =
            async |payment: &Pay, parts: &Parts| match (payment.cents, parts.headers.get("x-limit"), parts.uri.query())
            {
                (1000, Some(limit), Some("a=b")) => {
                    Err((StatusCode::PAYMENT_REQUIRED, limit.to_str().unwrap().to_owned()))
                }
                _ => Ok(()),
            };
        Ok(payment.check(asked).await?.execute(async |_, _| Ok("paid")).await)
    };
    let idem = unscoped(MemoryStore::new()).single_tenant("acme").unwrap().build().unwrap();
    let server = Server::start(Router::<Idem>::new().route("/pay", post(handler)).with_state(idem)).await;
    let request = server.request("/pay?a=b").header("idempotency-key", "k").header("x-limit", "999");
    let refused = server.send(request.json(&payment())).await;
    assert_eq!((refused.status, refused.body.as_slice()), (402, &b"999"[..]));
    assert_eq!(server.pay("k").await.body, b"paid");
}

//! idem for axum: a handler stays a handler, and its second request is safe.
//!
//! ```
//! use axum::http::StatusCode;
//! use axum::response::Response;
//! use axum::routing::post;
//! use axum::{Json, Router};
//! use idem_axum::{Idem, Idempotent};
//! use idem_core::{IdempotentCommand, MemoryStore};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, IdempotentCommand)]
//! #[serde(deny_unknown_fields)]
//! #[idem(operation = "create_payment", version = 1)]
//! struct CreatePayment {
//!     account_id: String,
//!     cents: u64,
//! }
//!
//! async fn create_payment(payment: Idempotent<CreatePayment>) -> Response {
//!     payment.execute(|payment, claim| async move {
//!         let id = claim.derived_id("pay");
//!         Ok((StatusCode::CREATED, Json((id, payment.cents))))
//!     }).await
//! }
//!
//! let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.build()?;
//! let app: Router = Router::new().route("/payments", post(create_payment)).with_state(idem);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A second `POST /payments` with the same `Idempotency-Key` and the same payment gets the first answer again, with
//! `Idempotency-Replayed: true`. Another payment under that key gets 409. Every refusal is a problem (RFC 9457) with a
//! stable [`Code`] and what the client does [`Next`].

mod builder;
mod code;
mod execute;
mod execute_tx;
mod extract;
mod gate;
mod key;
#[cfg(feature = "utoipa")]
pub mod openapi;
mod operation;
mod outcome;
mod problem;
mod replay;
mod reply;
mod scope;
mod state;

pub use builder::{IdemBuilder, Profile};
pub use code::{Code, Next};
pub use extract::{CommandFrom, Idempotent};
pub use gate::StillRunning;
/// What this crate stands on. `#[derive(IdempotentCommand)]` finds it here where idem-core is no dependency itself.
pub use idem_core;
pub use idem_core::{
    Call, CallClass, CallError, CallSpec, Claim, DownstreamKey, Failure, Fate, IdempotencyKey, IdempotentCommand,
    KeyForm, MemoryStore, NotCalled, Replay, Reply, ResourceRef, Rules, Tenant,
};
pub use operation::Operation;
pub use replay::Made;
pub use reply::{IntoReply, Unwritable};
pub use scope::{FoundTenant, KnowsTenants, NoTenants, Tenants};
pub use state::{HasIdem, Idem, assert_state};

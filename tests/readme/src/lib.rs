//! The README's own code, compiled with what a reader has beside it: a ledger, a provider, and who asks.
#![deny(unused_imports)]
#![allow(dead_code, reason = "nothing here runs: that it compiles is the point")]
#![allow(non_local_definitions, reason = "the whole of it stands in one function, as it stands in one page")]

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use idem_core::{CommandHash, Tenant};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

include!(concat!(env!("OUT_DIR"), "/readme.rs"));

struct Ledger;

#[derive(Serialize)]
struct Payment;

impl Ledger {
    async fn insert_or_resume<C>(&self, _: &str, _: CommandHash, _: &C) -> Result<(), LedgerError> {
        unreachable!("nothing here runs")
    }

    async fn settle(&self, _: &str, _: &Charge) -> Result<Payment, LedgerError> {
        unreachable!("nothing here runs")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the ledger's own")]
struct LedgerError;

struct Provider;

#[derive(Serialize, Deserialize)]
struct Charge;

impl Provider {
    async fn charge<C, K>(&self, _: &C, _: K) -> Result<Charge, ProviderError> {
        unreachable!("nothing here runs")
    }
}

#[derive(Debug, thiserror::Error)]
enum ProviderError {
    #[error("unreachable")]
    Unreachable,
    #[error("timed out")]
    TimedOut,
}

struct Merchant;

impl<S: Sync> FromRequestParts<S> for Merchant {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        unreachable!("nothing here runs")
    }
}

impl TryFrom<Merchant> for Tenant {
    type Error = idem_core::InvalidTenant;

    fn try_from(_: Merchant) -> Result<Self, Self::Error> {
        unreachable!("nothing here runs")
    }
}

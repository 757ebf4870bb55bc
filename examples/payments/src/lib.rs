//! A payment service on idem, as an application would write it: `payment` is the command, `api` the handler, `ledger`
//! its own rows, `provider` the world outside, `merchant` who asks, `metrics` what is counted, `service` all of it
//! together, `demo` its visitors.

pub mod api;
pub mod demo;
pub mod ledger;
pub mod merchant;
pub mod metrics;
pub mod payment;
pub mod provider;
pub mod service;

//! A payment service on idem, as an application would write it: `payment` and `transfer` are the commands, `api` the
//! handlers, `ledger` its own rows, `reconcile` what a worker knows of them, `events` what others are told, `office` one of them, `provider` the world outside, `merchant` who
//! asks, `metrics` what is counted, `setup` its options, `service` all of it together, `demo` its visitors.

pub mod api;
pub mod demo;
pub mod events;
pub mod ledger;
pub mod merchant;
pub mod metrics;
pub mod office;
pub mod payment;
pub mod provider;
pub mod reconcile;
pub mod service;
pub mod setup;
pub mod transfer;

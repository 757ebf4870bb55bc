//! What faults do to payments: processes that die, at every point where they can.
//!
//! Each suite takes its store by constructor ([`home::Home`]), provokes, heals, and then asserts invariants only.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]
#![allow(clippy::print_stdout, reason = "a run tells its seed and its counts")]

mod cut;
mod die;
mod history;
mod home;
mod invariants;
mod kill;
mod proxy;
mod service;
mod world;

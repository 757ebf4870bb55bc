//! What faults do to payments: processes that die, at every point where they can.
//!
//! Each suite takes its store by constructor ([`home::Home`]), provokes, heals, and then asserts invariants only.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]
#![allow(clippy::print_stdout, reason = "a run tells its seed and its counts")]

mod die;
mod history;
mod home;
mod kill;
mod service;
mod world;

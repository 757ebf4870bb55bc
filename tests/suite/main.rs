//! Every promise of idem, in one binary: linked once, run in parallel.

#![allow(clippy::unwrap_used, reason = "a test's panic is its verdict, also in the helpers of tests")]

mod canonical;
mod contracts;
mod derive;
mod http;
mod layering;
mod outbox;
mod protocol;
mod stores;
mod support;

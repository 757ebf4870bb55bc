//! The shipped engine on the memory store, with everything around it played: nodes that die, clients that hang up and
//! come again, a database that is slow or away, a provider whose answers are lost, clocks that jump. After a while
//! nothing goes wrong any more, and everybody has to get an answer.
//!
//! Chance comes from a seed, time from a runtime that does not wait, so that a seed gives the same run again.

// All of it is test; clippy sees that only of functions marked as one.
#![allow(clippy::unwrap_used)]

mod chance;
mod client;
mod node;
mod provider;
mod run;
mod seeds;
mod store;

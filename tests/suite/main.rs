//! One binary for all behaviour: linked once, run in parallel.
#![allow(clippy::unwrap_used)] // a test that cannot go on says where

mod http;
mod support;

//! One binary for all behaviour: linked once, run in parallel.

mod layering;
mod protocol;
mod support;

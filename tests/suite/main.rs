//! Every promise of idem, in one binary: linked once, run in parallel.

mod canonical;
mod contracts;
mod layering;
mod protocol;
mod support;

//! Every promise of idem, in one binary.

mod canonical;
mod contracts;

//! One integration binary.

mod stores;

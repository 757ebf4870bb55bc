//! The payment service.
fn main() {}

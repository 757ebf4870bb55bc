//! A crate that depends on idem-axum alone, and does not have to say so.
#![forbid(unsafe_code)]

use idem_axum::idem_core;

/// A command.
#[derive(Debug, idem_core::IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub struct Pay {
    /// How much, in cents.
    pub cents: u64,
}

#[cfg(test)]
mod tests {
    use idem_axum::idem_core::IdempotentCommand as _;

    #[test]
    fn idem_axum_alone_is_enough_for_a_command() {
        assert_eq!(super::Pay { cents: 5 }.preimage(), r#"["idem/1","pay",1,{"cents":"5"}]"#);
    }
}

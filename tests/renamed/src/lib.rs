//! A crate in which idem-core has another name, under the lints of a strict one.
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused, unreachable_pub, missing_debug_implementations, clippy::all, clippy::pedantic)]

/// idem, handed on: whoever depends on this crate alone reaches it here.
pub use ::our_idem as idem;

/// A command, without a word of where idem is.
#[derive(::std::fmt::Debug, ::our_idem::IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub struct Pay {
    /// How much, in cents.
    pub cents: u64,
    /// By which means.
    pub method: Method,
}

/// A value, told where idem is.
#[derive(::std::fmt::Debug, ::our_idem::Canonical)]
#[idem(crate = ::our_idem)]
pub enum Method {
    /// Notes and coins.
    Cash,
    /// A card.
    Card(u64),
}

#[cfg(test)]
mod tests {
    use ::our_idem::IdempotentCommand as _;
    use ::std::assert_eq;

    #[test]
    fn a_renamed_dependency_works_without_being_told() {
        let pay = super::Pay { cents: 5, method: super::Method::Card(1) };
        assert_eq!(pay.preimage(), r#"["idem/1","pay",1,{"cents":"5","method":{"Card":"1"}}]"#);
    }
}

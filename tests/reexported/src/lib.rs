//! A crate that reaches idem through another one, which it has to be told.
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused, unreachable_pub, missing_debug_implementations, clippy::all, clippy::pedantic)]

/// A command.
#[derive(::std::fmt::Debug, ::idem_renamed::idem::IdempotentCommand)]
#[idem(operation = "pay", version = 1, crate = ::idem_renamed::idem)]
pub struct Pay {
    /// How much, in cents.
    pub cents: u64,
    /// By which means.
    pub method: Method,
}

/// A value, which is told in quotes.
#[derive(::std::fmt::Debug, ::idem_renamed::idem::Canonical)]
#[idem(crate = "::idem_renamed::idem")]
pub enum Method {
    /// Notes and coins.
    Cash,
    /// A card.
    Card(Number),
}

/// A newtype.
#[derive(::std::fmt::Debug, ::idem_renamed::idem::Canonical)]
#[idem(crate = ::idem_renamed::idem)]
pub struct Number(pub u64);

#[cfg(test)]
mod tests {
    use ::idem_renamed::idem::IdempotentCommand as _;
    use ::std::assert_eq;

    #[test]
    fn a_crate_that_hands_idem_on_is_named() {
        let pay = super::Pay { cents: 5, method: super::Method::Card(super::Number(1)) };
        assert_eq!(pay.preimage(), r#"["idem/1","pay",1,{"cents":"5","method":{"Card":"1"}}]"#);
    }
}

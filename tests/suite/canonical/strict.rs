//! Generated code under the lints of a strict crate: it compiles, and clippy has nothing to say.
#![deny(warnings, missing_docs, unused, unreachable_pub, missing_debug_implementations, clippy::all, clippy::pedantic)]

use std::marker::PhantomData;

use idem_core::{Canonical, IdempotentCommand};

/// A command.
#[derive(Clone, Debug, IdempotentCommand)]
#[idem(operation = "strict", version = 1)]
pub(crate) struct Strict<'a, T> {
    /// Text.
    #[idem(trim, uppercase, default = "EUR")]
    pub(crate) currency: &'a str,
    /// Held.
    pub(crate) held: Option<Newtype>,
    /// Other.
    pub(crate) other: Vec<T>,
    /// Never hashed.
    #[idem(exclude)]
    pub(crate) excluded: String,
    /// A mark.
    pub(crate) mark: PhantomData<T>,
}

/// A newtype.
#[derive(Canonical, Clone, Debug)]
pub(crate) struct Newtype(u64);

/// An enum.
#[derive(Canonical, Clone, Debug)]
pub(crate) enum Either {
    /// Nothing.
    Unit,
    /// A row.
    Row(u8, Newtype),
    /// Members.
    Object {
        /// One.
        one: char,
    },
}

#[test]
fn generated_code_is_clean_under_strict_lints() {
    let other = vec![Either::Unit, Either::Row(1, Newtype(2)), Either::Object { one: 'c' }];
    let strict = Strict { currency: " eur", held: Some(Newtype(1)), other, excluded: String::new(), mark: PhantomData };
    let preimage = strict.preimage();
    assert_eq!(
        preimage,
        r#"["idem/1","strict",1,{"held":"1","other":["Unit",{"Row":["1","2"]},{"Object":{"one":"c"}}]}]"#
    );
    assert_eq!(strict.excluded, "");
}

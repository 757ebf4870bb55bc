//! The expansion as a function of tokens.
#![allow(clippy::unwrap_used, reason = "a test's panic is its verdict")]

mod editor;
mod expansion;
mod manifest;

use proc_macro2::TokenStream;

use crate::model::Derive;

/// The expansion of a type, as text in the usual layout.
fn expanded(derive: Derive, source: &str) -> String {
    let tokens: TokenStream = source.parse().unwrap();
    let file: syn::File = syn::parse2(crate::derive(tokens, derive)).unwrap();
    prettyplease::unparse(&file)
}

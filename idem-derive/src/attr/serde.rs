//! What serde's attributes say of the wire. Its names are not looked at.

use proc_macro2::TokenTree;
use syn::Attribute;

/// Whether `#[serde(deny_unknown_fields)]` stands among the attributes.
pub(crate) fn denies_unknown_fields(attrs: &[Attribute]) -> bool {
    let serde = attrs.iter().filter(|attr| attr.path().is_ident("serde"));
    serde.filter_map(|attr| attr.meta.require_list().ok()).any(|list| {
        let mut words = list.tokens.clone().into_iter();
        words.any(|token| matches!(token, TokenTree::Ident(word) if word == "deny_unknown_fields"))
    })
}

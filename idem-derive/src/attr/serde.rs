//! What serde's attributes say of the wire. Its names are not looked at: the wire may be spelled anew without touching
//! the hash. What lets two different requests be one command is read, and named in the contract.

use proc_macro2::{Span, TokenTree};
use syn::Attribute;

/// How a field or variant comes in, if not as it stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wire {
    NotDeserialized,
    Flattened,
    Untagged,
    AnyOther,
}

impl Wire {
    /// Reads the attributes of a field or variant. One that is not deserialized comes in no other way either.
    pub(crate) fn parse(attrs: &[Attribute]) -> Option<(Self, Span)> {
        const WORDS: [(&str, Wire); 5] = [
            ("skip", Wire::NotDeserialized),
            ("skip_deserializing", Wire::NotDeserialized),
            ("flatten", Wire::Flattened),
            ("untagged", Wire::Untagged),
            ("other", Wire::AnyOther),
        ];
        let said: Vec<_> = words(attrs).collect();
        WORDS.into_iter().find_map(|(word, wire)| said.iter().find(|(said, _)| said == word).map(|(_, at)| (wire, *at)))
    }
}

/// Whether the type's own attributes make serde refuse members that it does not know. Not with `from`, where another
/// type is read, which says for itself.
pub(crate) fn denies_unknown_fields(attrs: &[Attribute]) -> bool {
    let says = |word: &str| words(attrs).any(|(said, _)| said == word);
    says("deny_unknown_fields") && !says("from") && !says("try_from")
}

/// The words inside every `#[serde(…)]`, without what they are given.
fn words(attrs: &[Attribute]) -> impl Iterator<Item = (String, Span)> {
    let lists =
        attrs.iter().filter(|attr| attr.path().is_ident("serde")).filter_map(|attr| attr.meta.require_list().ok());
    let tokens = lists.flat_map(|list| list.tokens.clone());
    tokens.filter_map(|token| match token {
        TokenTree::Ident(word) => Some((word.to_string(), word.span())),
        _ => None,
    })
}

//! What serde's attributes say of the wire. Its names are not looked at: the wire may be spelled anew without touching
//! the hash. What lets two different requests be one command is read, and named in the contract.

use proc_macro2::{Span, TokenTree};
use syn::{Attribute, Fields, Variant};

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

/// Whether the type's own attributes make serde refuse members that it does not know. Not with `from` and its like,
/// where another type is read, which says for itself.
pub(crate) fn denies_unknown_fields(attrs: &[Attribute]) -> bool {
    says(attrs, "deny_unknown_fields") && !["from", "try_from", "transparent"].iter().any(|word| says(attrs, word))
}

/// Whether serde passes over members that it does not know in this variant, whatever the enum says. Beside a tag it does
/// so in a variant without members of its own. What a variant holds without a name around it says for itself.
pub(crate) fn passes_over_unknown_fields(of_enum: &[Attribute], variant: &Variant, wire: Option<Wire>) -> bool {
    let is_beside_a_tag = says(of_enum, "tag") && !says(of_enum, "content");
    match &variant.fields {
        _ if wire == Some(Wire::NotDeserialized) => false,
        Fields::Named(_) => false,
        Fields::Unnamed(held) => held.unnamed.len() == 1 && (is_beside_a_tag || wire == Some(Wire::Untagged)),
        Fields::Unit => is_beside_a_tag,
    }
}

fn says(attrs: &[Attribute], word: &str) -> bool {
    words(attrs).any(|(said, _)| said == word)
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

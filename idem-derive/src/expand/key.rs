//! Keys of maps: newtypes of a key, and enums that are names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{WherePredicate, parse_quote};

use super::newtype;
use crate::model::{Body, Field, Input, Shape, Variant};

/// The implementation of `MapKey`, for types whose distinct values have distinct texts.
pub(super) fn key(input: &Input<'_>) -> TokenStream {
    match &input.body {
        Body::Newtype(fields) => match fields.iter().filter(|field| !field.is_mark).collect::<Vec<_>>().as_slice() {
            // A second field, excluded, would leave two keys with one text.
            [field] if keeps_text(field) && !newtype::holds_itself(input, field) => of_newtype(input, field),
            _ => TokenStream::new(),
        },
        Body::OneOf(variants) if variants.iter().all(|variant| variant.shape == Shape::Unit) => {
            of_names(input, variants)
        }
        _ => TokenStream::new(),
    }
}

/// A key is written verbatim, so that rules which say otherwise make the type none.
fn keeps_text(field: &Field<'_>) -> bool {
    field.rules().iter().all(|(word, _)| *word == "verbatim")
}

fn of_newtype(input: &Input<'_>, field: &Field<'_>) -> TokenStream {
    let ident = input.ident;
    let (inner, member) = (field.ty, &field.member);
    let mut generics = input.generics.clone();
    // For any lifetime, so that the bound may be false: then the newtype is no key, and only a map would ask.
    let bound: WherePredicate = parse_quote!(for<'__any> #inner: _idem::MapKey);
    generics.make_where_clause().predicates.push(bound);
    let (impls, types, clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impls _idem::MapKey for #ident #types #clause {
            fn class() -> _idem::Cow<'static, _idem::str> {
                <#inner as _idem::MapKey>::class()
            }

            fn with_text<__R>(&self, __read: impl _idem::FnOnce(&_idem::str) -> __R) -> __R {
                <#inner as _idem::MapKey>::with_text(&self.#member, __read)
            }
        }
    }
}

fn of_names(input: &Input<'_>, variants: &[Variant<'_>]) -> TokenStream {
    let ident = input.ident;
    let (impls, types, clause) = input.generics.split_for_impl();
    let mut sorted: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    let arms = variants.iter().map(|variant| {
        let (variant, name) = (variant.ident, &variant.name);
        quote!(Self::#variant { .. } => #name,)
    });
    quote! {
        #[automatically_derived]
        impl #impls _idem::MapKey for #ident #types #clause {
            fn class() -> _idem::Cow<'static, _idem::str> {
                _idem::class_of_names(&[#(#sorted),*])
            }

            fn with_text<__R>(&self, __read: impl _idem::FnOnce(&_idem::str) -> __R) -> __R {
                __read(match self { #(#arms)* })
            }
        }
    }
}

//! The derive macros of `idem-core`, which documents and re-exports them.
//!
//! A derive runs in four steps, a file each: `attr` parses the attributes, `model` is the type as the macro sees it,
//! `check` refuses what does not fit together, `expand` writes the implementation. `ctxt` collects every error on the
//! way, so that one compilation shows them all; `krate` finds idem-core under the name that the user's manifest gives it.

mod attr;
mod case;
mod check;
mod ctxt;
mod expand;
mod krate;
mod model;
#[cfg(test)]
mod tests;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{DeriveInput, Meta};

use crate::ctxt::Ctxt;
use crate::model::{Derive, Input};

/// Documented at `idem_core::IdempotentCommand`.
#[proc_macro_derive(IdempotentCommand, attributes(idem))]
pub fn derive_idempotent_command(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derive(input.into(), Derive::Command).into()
}

/// Documented at `idem_core::Canonical`.
#[proc_macro_derive(Canonical, attributes(idem))]
pub fn derive_canonical(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derive(input.into(), Derive::Value).into()
}

fn derive(tokens: TokenStream, derive: Derive) -> TokenStream {
    let ctxt = Ctxt::new();
    let mut taken = Vec::new();
    let input = syn::parse2::<DeriveInput>(tokens.clone()).or_else(|error| {
        // An attribute that is still being typed is no reason for an editor to lose the implementation.
        syn::parse2(without_idem(tokens, &mut taken)).map_err(|_| error)
    });
    let input = match input {
        Ok(input) => input,
        Err(error) => {
            // Reported as it is: nothing else is known of the type.
            let _ = ctxt.check();
            return error.into_compile_error();
        }
    };
    for attribute in taken.iter().filter(|attribute| syn::parse2::<Meta>(attribute.stream()).is_err()) {
        ctxt.error(attribute.span(), "an idem attribute says what it is in brackets, such as `#[idem(exclude)]`");
    }
    let model = Input::from_syn(&ctxt, derive, &input);
    // What was taken out may be what is missing.
    if taken.is_empty() {
        check::check(&ctxt, &model);
    }
    match ctxt.check() {
        Ok(()) => expand::expand(&model),
        Err(errors) => expand::stub(&model, errors),
    }
}

/// The item without its `#[idem …]` attributes, which are put into `taken`.
fn without_idem(tokens: TokenStream, taken: &mut Vec<Group>) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let is_after_pound = matches!(kept.last(), Some(TokenTree::Punct(pound)) if pound.as_char() == '#');
        match token {
            TokenTree::Group(group) if is_after_pound && group.delimiter() == Delimiter::Bracket && is_idem(&group) => {
                kept.pop();
                taken.push(group);
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_idem(group.stream(), taken));
                inner.set_span(group.span());
                kept.push(inner.into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_idem(attribute: &Group) -> bool {
    matches!(attribute.stream().into_iter().next(), Some(TokenTree::Ident(word)) if word == "idem")
}

//! The derive macros of `idem-core`, which documents and re-exports them.
//!
//! A derive runs in four steps, a file each: `attr` parses the attributes, `model` is the type as the macro sees it,
//! `check` refuses what does not fit together, `expand` writes the implementation. `ctxt` collects every error on the
//! way, so that one compilation shows them all.

mod attr;
mod case;
mod check;
mod ctxt;
mod expand;
mod model;

use proc_macro::TokenStream;

use crate::ctxt::Ctxt;
use crate::model::{Derive, Input};

/// Documented at `idem_core::IdempotentCommand`.
#[proc_macro_derive(IdempotentCommand, attributes(idem))]
pub fn derive_idempotent_command(input: TokenStream) -> TokenStream {
    derive(input, Derive::Command)
}

/// Documented at `idem_core::Canonical`.
#[proc_macro_derive(Canonical, attributes(idem))]
pub fn derive_canonical(input: TokenStream) -> TokenStream {
    derive(input, Derive::Value)
}

fn derive(input: TokenStream, derive: Derive) -> TokenStream {
    let input: syn::DeriveInput = match syn::parse(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error().into(),
    };
    let ctxt = Ctxt::new();
    let model = Input::from_syn(&ctxt, derive, &input);
    check::check(&ctxt, &model);
    let expanded = match ctxt.check() {
        Ok(()) => expand::expand(&model),
        Err(errors) => expand::stub(&model, errors),
    };
    expanded.into()
}

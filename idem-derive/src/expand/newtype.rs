//! Newtypes: every method is handed on to what the type holds.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{WherePredicate, parse_quote};

use super::{attributes, bounds, generated, with_parameter};
use crate::model::{Derive, Field, Input, mentions};

/// A newtype is what it holds. Without attributes of its own it takes those of the field it stands in, as long as it can
/// stand in one: a command does not, and one that holds itself would have to take them for what is being implemented.
pub(super) fn newtype(input: &Input<'_>, field: &Field<'_>, marks: TokenStream) -> TokenStream {
    let ident = input.ident;
    let inner = field.ty;
    let member = &field.member;
    let takes_attributes = input.derive == Derive::Value
        && field.rules().is_empty()
        && input.attrs.bound.is_none()
        && !holds_itself(input, field);
    let (own, held) =
        if takes_attributes { (quote!(__A), quote!(__A)) } else { (quote!(_idem::none), attributes(field)) };
    let span = generated(inner.span());
    let generics = if takes_attributes { with_parameter(input.generics, "__A") } else { input.generics.clone() };
    let written = if takes_attributes {
        let mut written = generics.clone();
        let bound: WherePredicate = parse_quote!(#inner: _idem::Canonical<__A>);
        written.make_where_clause().predicates.push(bound);
        written
    } else {
        bounds(input)
    };
    let (impls, _, clause) = written.split_for_impl();
    let (_, types, _) = input.generics.split_for_impl();
    let as_inner = quote_spanned!(span=> <#inner as _idem::Canonical<#held>>);
    let canonical = quote! {
        #[automatically_derived]
        impl #impls _idem::Canonical<#own> for #ident #types #clause {
            const NULLABLE: _idem::bool = #as_inner::NULLABLE;

            fn write<__S: _idem::Sink + ?_idem::Sized>(&self, __sink: &mut __S) {
                #marks
                #as_inner::write(&self.#member, __sink);
            }

            fn shape(__shapes: &mut _idem::Shapes) -> _idem::Shape {
                __shapes.newtype::<Self, #own>(|__shapes| #as_inner::shape(__shapes))
            }

            fn is_absent(&self) -> _idem::bool {
                #as_inner::is_absent(&self.#member)
            }

            fn write_member<__S: _idem::Sink + ?_idem::Sized>(&self, __sink: &mut __S) {
                #as_inner::write_member(&self.#member, __sink);
            }

            fn write_list<'__list, __S: _idem::Sink + ?_idem::Sized>(
                __items: impl _idem::Iterator<Item = &'__list Self>,
                __sink: &mut __S,
            ) where
                Self: '__list,
            {
                #as_inner::write_list(_idem::Iterator::map(__items, |__it| &__it.#member), __sink);
            }

            fn list_shape(__shapes: &mut _idem::Shapes) -> _idem::Shape {
                __shapes.newtype::<[Self], #own>(|__shapes| #as_inner::list_shape(__shapes))
            }
        }
    };
    if holds_itself(input, field) {
        return canonical;
    }

    // The bounds are for any lifetime, so that one without a parameter in it may also be false: then the newtype
    // takes no default, and only a default would ask.
    let mut with_default = with_parameter(&generics, "__D");
    let bound: WherePredicate = parse_quote!(for<'__any> #inner: _idem::AcceptsDefault<__D, #held>);
    with_default.make_where_clause().predicates.push(bound);
    let also: WherePredicate = parse_quote!(Self: _idem::Canonical<#own>);
    with_default.make_where_clause().predicates.push(also);
    let (default_impls, _, default_clause) = with_default.split_for_impl();
    let mut single = generics.clone();
    let bound: WherePredicate = parse_quote!(for<'__any> #inner: _idem::Single<#held>);
    single.make_where_clause().predicates.push(bound);
    let (single_impls, _, single_clause) = single.split_for_impl();
    quote! {
        #canonical

        #[automatically_derived]
        impl #default_impls _idem::AcceptsDefault<__D, #own> for #ident #types #default_clause {
            fn write_default<__S: _idem::Sink + ?_idem::Sized>(__default: &__D, __sink: &mut __S) {
                <#inner as _idem::AcceptsDefault<__D, #held>>::write_default(__default, __sink);
            }

            fn is_default(&self, __default: &__D) -> _idem::bool {
                <#inner as _idem::AcceptsDefault<__D, #held>>::is_default(&self.#member, __default)
            }
        }

        #[automatically_derived]
        impl #single_impls _idem::Single<#own> for #ident #types #single_clause {}
    }
}

pub(super) fn holds_itself(input: &Input<'_>, field: &Field<'_>) -> bool {
    mentions(field.ty, &|found| found == input.ident || found == "Self")
}

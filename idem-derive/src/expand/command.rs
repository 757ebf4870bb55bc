//! What a command says of itself: its name, its version, and how it is said in older ones.

use proc_macro2::{Literal, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, Lifetime, Type, parse_quote};

use super::generated;
use crate::model::{Derive, Input};

/// The implementation of `IdempotentCommand`.
pub(super) fn command(input: &Input<'_>, generics: &Generics) -> TokenStream {
    if input.derive != Derive::Command {
        return TokenStream::new();
    }
    let operation = input.attrs.operation.as_ref().and_then(|given| given.value.clone()).unwrap_or_default();
    let version = input.version().unwrap_or(1);
    let implementation = implementation(input, generics, &operation, version, versions(input));
    let previous = previous(input, generics);
    let checked = checked(input);
    quote! {
        #implementation

        #previous

        #checked
    }
}

/// A command without a name, which is what a later version knows a broken one by.
pub(super) fn stub(input: &Input<'_>) -> TokenStream {
    if input.derive != Derive::Command {
        return TokenStream::new();
    }
    implementation(input, input.generics, "", 1, TokenStream::new())
}

fn implementation(
    input: &Input<'_>,
    generics: &Generics,
    operation: &str,
    version: u32,
    versions: TokenStream,
) -> TokenStream {
    let ident = input.ident;
    let (impls, types, clause) = generics.split_for_impl();
    let version = Literal::u32_unsuffixed(version);
    quote! {
        #[automatically_derived]
        impl #impls _idem::IdempotentCommand for #ident #types #clause {
            const OPERATION: &'static _idem::str = #operation;
            const VERSION: _idem::u32 = #version;

            #versions
        }
    }
}

/// The frozen struct of the version before.
fn previous(input: &Input<'_>, generics: &Generics) -> Option<TokenStream> {
    let previous = input.attrs.previous.as_ref()?.value.as_ref()?;
    let ident = input.ident;
    let (impls, types, clause) = generics.split_for_impl();
    let span = generated(previous.span());
    // Without `oldest` the fields say the present version alone.
    let own = input.attrs.oldest.is_some().then(|| {
        quote!(
            const OWN: _idem::u32 = <#previous as _idem::IdempotentCommand>::VERSION + 1;
        )
    });
    Some(quote_spanned! {span=>
        #[automatically_derived]
        impl #impls _idem::Versioned for #ident #types #clause {
            type Previous = #previous;

            #own
        }
    })
}

/// How other versions than the present one are said.
fn versions(input: &Input<'_>) -> TokenStream {
    let attrs = &input.attrs;
    let writes = attrs.writes.as_ref().and_then(|given| given.value).map(|writes| {
        let writes = Literal::u32_unsuffixed(writes);
        quote!(const WRITES: _idem::u32 = #writes;)
    });
    let previous = attrs.previous.as_ref().map(|given| given.span);
    let given_oldest = attrs.oldest.as_ref().and_then(|given| given.value).map(Literal::u32_unsuffixed);
    if previous.is_none() && given_oldest.is_none() {
        return quote!(#writes);
    }
    let oldest = match previous {
        None => quote!(#given_oldest),
        Some(span) => {
            let oldest = given_oldest.as_ref().map_or_else(|| quote!(_idem::None), |n| quote!(_idem::Some(#n)));
            let until = input.until().map(Literal::u32_unsuffixed);
            let until = until.map_or_else(|| quote!(Self::VERSION), |until| quote!(#until));
            quote_spanned!(generated(span)=> _idem::assert_lineage::<Self>(#oldest, #until))
        }
    };
    let [keeps, contract_at, write_at] = match previous {
        None => [
            quote!((Self::OLDEST..=Self::VERSION).contains(&__version)),
            quote!(_idem::contract_of_own::<Self>(__version)),
            quote!(_idem::write_by_own(self, __version, __sink)),
        ],
        Some(_) => [
            quote!(_idem::keeps::<Self>(__version)),
            quote!(_idem::contract_at::<Self>(__version)),
            quote!(_idem::write_at(self, __version, __sink)),
        ],
    };
    let by_version = input.until().map(|_| {
        quote! {
            fn write_value_at<__S: _idem::Sink + ?_idem::Sized>(&self, __version: _idem::u32, __sink: &mut __S) {
                _idem::write_value_at(self, __version, __sink);
            }

            fn shape_at(__version: _idem::u32, __shapes: &mut _idem::Shapes) -> _idem::Shape {
                _idem::shape_at::<Self>(__version, __shapes)
            }
        }
    });
    quote! {
        const OLDEST: _idem::u32 = #oldest;
        #writes

        fn keeps(__version: _idem::u32) -> _idem::bool {
            #keeps
        }

        fn contract_at(__version: _idem::u32) -> _idem::Option<_idem::Contract> {
            #contract_at
        }

        fn write_at<__S: _idem::Sink + ?_idem::Sized>(&self, __version: _idem::u32, __sink: &mut __S) -> _idem::bool {
            #write_at
        }

        #by_version
    }
}

/// Makes the compiler look at `previous` where it is given. A generic command is looked at where it is used.
fn checked(input: &Input<'_>) -> Option<TokenStream> {
    let span = input.attrs.previous.as_ref()?.span;
    if !input.generics.params.iter().all(|parameter| matches!(parameter, GenericParam::Lifetime(_))) {
        return None;
    }
    let ident = input.ident;
    let forever = input.generics.lifetimes().map(|_| -> Lifetime { parse_quote!('static) });
    let command: Type = parse_quote!(#ident<#(#forever),*>);
    Some(quote_spanned! {generated(span)=>
        const _: _idem::u32 = <#command as _idem::IdempotentCommand>::OLDEST;
    })
}

//! Writes the implementations.

mod bounds;
mod command;
mod default;
mod key;
mod newtype;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, parse_quote};

use self::bounds::bounds;
use self::default::{default, default_type};
use crate::attr::Wire;
use crate::model::{Body, Derive, Field, Input, Shape, Variant};

pub(crate) fn expand(input: &Input<'_>) -> TokenStream {
    let value = match &input.body {
        Body::Object(fields) => composite(input, quote!(Object), object_parts(fields, Projection::Struct)),
        Body::Tuple(fields) => composite(input, quote!(Tuple), tuple_parts(fields, Projection::Struct)),
        Body::OneOf(variants) => composite(input, quote!(OneOf), one_of_parts(variants)),
        Body::Newtype(fields) => match fields.iter().find(|field| field.is_hashed()) {
            Some(field) => newtype::newtype(input, field, marks(fields)),
            None => TokenStream::new(),
        },
        Body::Union(_) => TokenStream::new(),
    };
    let key = key::key(input);
    in_own_scope(input, quote!(#value #key), command::command(input, &bounds(input)))
}

/// What is left of a type with mistakes: the errors, and implementations without a body, so that the places that use
/// the type do not add errors of their own.
pub(crate) fn stub(input: &Input<'_>, errors: Vec<syn::Error>) -> TokenStream {
    let errors = errors.into_iter().map(syn::Error::into_compile_error);
    // A value with a command's attributes is a command as well, which brings its own implementation.
    if input.derive == Derive::Value && input.attrs.operation.is_some() {
        return quote!(#(#errors)*);
    }
    let ident = input.ident;
    let (impls, types, clause) = input.generics.split_for_impl();
    let any_attributes = with_parameter(input.generics, "__A");
    let (any_attributes, ..) = any_attributes.split_for_impl();
    let any_default = with_parameter(&with_parameter(input.generics, "__D"), "__A");
    let (any_default, ..) = any_default.split_for_impl();
    let value = quote! {
        #[automatically_derived]
        impl #any_attributes _idem::Canonical<__A> for #ident #types #clause {
            fn write<__S: _idem::Sink + ?_idem::Sized>(&self, _: &mut __S) {}

            fn shape(_: &mut _idem::Shapes) -> _idem::Shape {
                _idem::Shape::Nothing
            }
        }

        #[automatically_derived]
        impl #any_default _idem::AcceptsDefault<__D, __A> for #ident #types #clause {
            fn write_default<__S: _idem::Sink + ?_idem::Sized>(_: &__D, _: &mut __S) {}
        }

        #[automatically_derived]
        impl #any_attributes _idem::Single<__A> for #ident #types #clause {}

        #[automatically_derived]
        impl #impls _idem::MapKey for #ident #types #clause {
            fn class() -> _idem::Cow<'static, _idem::str> {
                _idem::Cow::Borrowed("")
            }

            fn with_text<__R>(&self, __read: impl _idem::FnOnce(&_idem::str) -> __R) -> __R {
                __read("")
            }
        }
    };
    let scope = in_own_scope(input, value, command::stub(input));
    quote!(#(#errors)* #scope)
}

/// Keeps the generated names out of the user's module.
fn in_own_scope(input: &Input<'_>, value: TokenStream, command: TokenStream) -> TokenStream {
    let krate = input.krate();
    quote! {
        const _: () = {
            use #krate::__private as _idem;

            #value

            #command
        };
    }
}

/// A type with parts, which one body names for writing and for describing.
fn composite(input: &Input<'_>, kind: TokenStream, parts: TokenStream) -> TokenStream {
    let ident = input.ident;
    let generics = bounds(input);
    let (impls, types, clause) = generics.split_for_impl();
    let denies_unknown = input.denies_unknown.then(|| {
        quote!(
            const DENIES_UNKNOWN: _idem::bool = true;
        )
    });
    quote! {
        #[automatically_derived]
        impl #impls _idem::Composite for #ident #types #clause {
            type Kind = _idem::#kind;

            #denies_unknown

            fn parts<__P: _idem::Parts<Self>>(__parts: &mut __P) {
                #parts
            }
        }

        #[automatically_derived]
        impl #impls _idem::Canonical for #ident #types #clause {
            fn write<__S: _idem::Sink + ?_idem::Sized>(&self, __sink: &mut __S) {
                _idem::write(self, __sink);
            }

            fn shape(__shapes: &mut _idem::Shapes) -> _idem::Shape {
                _idem::shape::<Self>(__shapes)
            }
        }

        #[automatically_derived]
        impl #impls _idem::AcceptsDefault<Self> for #ident #types #clause {
            fn write_default<__S: _idem::Sink + ?_idem::Sized>(__default: &Self, __sink: &mut __S) {
                _idem::write(__default, __sink);
            }
        }

        #[automatically_derived]
        impl #impls _idem::Single for #ident #types #clause {}
    }
}

/// How a part is reached from the whole.
enum Projection<'a> {
    Struct,
    Variant(&'a Variant<'a>, IsOnly),
}

/// Whether a pattern needs no other arm.
type IsOnly = bool;

impl Projection<'_> {
    fn get(&self, field: &Field<'_>, span: Span) -> TokenStream {
        let member = &field.member;
        match self {
            Self::Struct => quote_spanned!(span=> |__it| _idem::Some(&__it.#member)),
            Self::Variant(variant, is_only) => {
                let ident = variant.ident;
                let other = (!is_only).then(|| quote_spanned!(span=> _ => _idem::None,));
                quote_spanned! {span=>
                    |__it| match __it {
                        Self::#ident { #member: __field, .. } => _idem::Some(__field),
                        #other
                    }
                }
            }
        }
    }
}

fn object_parts(fields: &[Field<'_>], projection: Projection<'_>) -> TokenStream {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
    fields
        .into_iter()
        .map(|field| {
            let name = format!(",{}:", json_string(&field.name));
            if field.is_excluded() {
                return quote!(__parts.excluded(#name););
            }
            let ty = field.ty;
            let span = generated(ty.span());
            let attributes = attributes(field);
            let get = projection.get(field, span);
            let member = match default(field) {
                Some(default) => {
                    let given = default_type(field);
                    quote_spanned! {span=>
                        __parts.member_or::<#attributes, #ty, #given>(#name, #get, || #default);
                    }
                }
                None => quote_spanned!(span=> __parts.member::<#attributes, #ty>(#name, #get);),
            };
            let wire = field.wire.map(|(wire, _)| wire_note(wire, 0));
            let member = quote!(#wire #member);
            match field.until().map(Literal::u32_unsuffixed) {
                Some(until) => quote! {
                    if __parts.until(#until) {
                        #member
                    } else {
                        __parts.excluded(#name);
                    }
                },
                None => member,
            }
        })
        .collect()
}

fn tuple_parts(fields: &[Field<'_>], projection: Projection<'_>) -> TokenStream {
    let marks = marks(fields);
    let hashed = fields.iter().filter(|field| field.is_hashed());
    let parts: TokenStream = hashed.map(|field| row_part(field, "element", &projection)).collect();
    quote!(#marks #parts)
}

/// Makes the compiler check that what is called `PhantomData` is it.
fn marks(fields: &[Field<'_>]) -> TokenStream {
    let marks = fields.iter().filter(|field| field.is_mark);
    marks
        .map(|field| {
            let ty = field.ty;
            quote_spanned!(generated(ty.span())=> _idem::mark::<#ty>();)
        })
        .collect()
}

fn one_of_parts(variants: &[Variant<'_>]) -> TokenStream {
    let is_only = variants.len() == 1;
    let mut untagged = 0;
    let mut variants: Vec<_> = variants
        .iter()
        .map(|variant| {
            untagged += u32::from(variant.wire == Some(Wire::Untagged));
            (variant, variant.wire.map(|wire| wire_note(wire, untagged)))
        })
        .collect();
    variants.sort_by(|(a, _), (b, _)| a.name.encode_utf16().cmp(b.name.encode_utf16()));
    variants
        .into_iter()
        .map(|(variant, wire)| {
            let ident = variant.ident;
            let name = json_string(&variant.name);
            let projection = Projection::Variant(variant, is_only);
            let (shape, parts) = match variant.shape {
                Shape::Unit => (quote!(Unit), TokenStream::new()),
                Shape::Newtype => {
                    let marks = marks(&variant.fields);
                    let held = variant.fields.iter().filter(|field| field.is_hashed());
                    let held: TokenStream = held.map(|field| row_part(field, "inner", &projection)).collect();
                    (quote!(Newtype), quote!(#marks #held))
                }
                Shape::Tuple => (quote!(Tuple), tuple_parts(&variant.fields, projection)),
                Shape::Object => (quote!(Object), object_parts(&variant.fields, projection)),
            };
            let argument = if parts.is_empty() { quote!(_) } else { quote!(__parts) };
            let other = (!is_only).then(|| quote!(_ => false,));
            quote! {
                #wire
                __parts.variant(
                    #name,
                    _idem::Variant::#shape,
                    |__it| match __it {
                        Self::#ident { .. } => true,
                        #other
                    },
                    |#argument| { #parts },
                );
            }
        })
        .collect()
}

/// Names how the next part comes in. The place is an untagged variant's among them, in the order of the source.
fn wire_note(wire: Wire, place: u32) -> TokenStream {
    let place = Literal::u32_unsuffixed(place);
    let wire = match wire {
        Wire::NotDeserialized => quote!(NotDeserialized),
        Wire::Flattened => quote!(Flattened),
        Wire::Untagged => quote!(Untagged(#place)),
        Wire::AnyOther => quote!(AnyOther),
    };
    quote!(__parts.wire(_idem::Wire::#wire);)
}

fn row_part(field: &Field<'_>, method: &str, projection: &Projection<'_>) -> TokenStream {
    let ty = field.ty;
    let span = generated(ty.span());
    let method = Ident::new(method, span);
    let attributes = attributes(field);
    let get = projection.get(field, span);
    quote_spanned!(span=> __parts.#method::<#attributes, #ty>(#get);)
}

/// The field's attributes as a type, by the words the user wrote.
fn attributes(field: &Field<'_>) -> TokenStream {
    let each = attributes_of_each(field);
    if field.attrs.unordered.is_some() { quote!(_idem::unordered<#each>) } else { each }
}

/// The same of the elements, where the field is a list without an order.
fn attributes_of_each(field: &Field<'_>) -> TokenStream {
    let attrs = &field.attrs;
    let rules = field.rules().into_iter().filter(|(word, _)| *word != "unordered").map(|(word, _)| {
        if word == "with" {
            let rule = attrs.with.as_ref().and_then(|given| given.value.clone());
            return rule.unwrap_or_else(|| quote!(_idem::none));
        }
        let word = format_ident!("{word}");
        let decimal = attrs.decimal.as_ref().and_then(|given| given.value).map(|decimal| {
            let scale = Literal::u32_unsuffixed(decimal.scale);
            let round = decimal.round.map(|round| format_ident!("{round}")).map(|round| quote!(, _idem::#round));
            quote!(<#scale #round>)
        });
        let precision = attrs.timestamp.as_ref().and_then(|given| given.value).map(|precision| {
            let precision = format_ident!("{precision}");
            quote!(<_idem::#precision>)
        });
        quote!(_idem::#word #decimal #precision)
    });
    let rules: Vec<_> = rules.collect();
    match rules.as_slice() {
        [] => quote!(_idem::none),
        [rule] => rule.clone(),
        rules => quote!((#(#rules),*)),
    }
}

/// The generics with one more type parameter.
fn with_parameter(generics: &Generics, name: &str) -> Generics {
    let mut generics = generics.clone();
    let name = Ident::new(name, Span::call_site());
    let parameter: GenericParam = parse_quote!(#name);
    let lifetimes = generics.lifetimes().count();
    generics.params.insert(lifetimes, parameter);
    generics
}

/// Generated code that blames the user's own: hygienic, but located where the user has to look.
fn generated(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// RFC 8785, section 3.2.2.2.
fn json_string(name: &str) -> String {
    let mut quoted = String::from('"');
    for c in name.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{C}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\0'..='\u{1F}' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

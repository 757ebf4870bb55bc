//! Writes the implementations.

mod newtype;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, WherePredicate, parse_quote};

use crate::attr::{DefaultValue, decimal_literal};
use crate::model::{Body, Derive, Field, Input, Shape, Variant, mentions};

pub(crate) fn expand(input: &Input<'_>) -> TokenStream {
    let value = match &input.body {
        Body::Object(fields) => composite(input, quote!(Object), object_parts(fields, Projection::Struct)),
        Body::Tuple(fields) => composite(input, quote!(Tuple), tuple_parts(fields, Projection::Struct)),
        Body::OneOf(variants) => composite(input, quote!(OneOf), one_of_parts(variants)),
        Body::Newtype(fields) => match fields.iter().find(|field| !field.is_excluded()) {
            Some(field) => newtype::newtype(input, field),
            None => TokenStream::new(),
        },
        Body::Union(_) => TokenStream::new(),
    };
    in_own_scope(input, value, command(input, &bounds(input)))
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
    let (_, types, clause) = input.generics.split_for_impl();
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
    };
    let scope = in_own_scope(input, value, command(input, input.generics));
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

fn command(input: &Input<'_>, generics: &Generics) -> TokenStream {
    if input.derive != Derive::Command {
        return TokenStream::new();
    }
    let ident = input.ident;
    let (impls, types, clause) = generics.split_for_impl();
    let operation = input.attrs.operation.as_ref().and_then(|given| given.value.clone()).unwrap_or_default();
    let version = input.attrs.version.as_ref().and_then(|given| given.value).unwrap_or(1);
    let version = proc_macro2::Literal::u32_unsuffixed(version);
    quote! {
        #[automatically_derived]
        impl #impls _idem::IdempotentCommand for #ident #types #clause {
            const OPERATION: &'static _idem::str = #operation;
            const VERSION: _idem::u32 = #version;
        }
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
            match default(field) {
                Some(default) => quote_spanned! {span=>
                    __parts.member_or::<#attributes, #ty, _>(#name, #get, || #default);
                },
                None => quote_spanned!(span=> __parts.member::<#attributes, #ty>(#name, #get);),
            }
        })
        .collect()
}

fn tuple_parts(fields: &[Field<'_>], projection: Projection<'_>) -> TokenStream {
    let hashed = fields.iter().filter(|field| !field.is_excluded());
    hashed.map(|field| row_part(field, "element", &projection)).collect()
}

fn one_of_parts(variants: &[Variant<'_>]) -> TokenStream {
    let is_only = variants.len() == 1;
    let mut variants: Vec<_> = variants.iter().collect();
    variants.sort_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
    variants
        .into_iter()
        .map(|variant| {
            let ident = variant.ident;
            let name = json_string(&variant.name);
            let projection = Projection::Variant(variant, is_only);
            let (shape, parts) = match variant.shape {
                Shape::Unit => (quote!(Unit), TokenStream::new()),
                Shape::Newtype => {
                    let held = variant.fields.iter().filter(|field| !field.is_excluded());
                    (quote!(Newtype), held.map(|field| row_part(field, "inner", &projection)).collect())
                }
                Shape::Tuple => (quote!(Tuple), tuple_parts(&variant.fields, projection)),
                Shape::Object => (quote!(Object), object_parts(&variant.fields, projection)),
            };
            let argument = if parts.is_empty() { quote!(_) } else { quote!(__parts) };
            let other = (!is_only).then(|| quote!(_ => false,));
            quote! {
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
    let attrs = &field.attrs;
    let rules = field.rules().into_iter().filter(|(word, _)| *word != "unordered").map(|(word, _)| {
        let word = format_ident!("{word}");
        let decimal = attrs.decimal.as_ref().and_then(|given| given.value).map(|decimal| {
            let scale = proc_macro2::Literal::u32_unsuffixed(decimal.scale);
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
    let each = match rules.as_slice() {
        [] => quote!(_idem::none),
        [rule] => rule.clone(),
        rules => quote!((#(#rules),*)),
    };
    if attrs.unordered.is_some() { quote!(_idem::unordered<#each>) } else { each }
}

fn default(field: &Field<'_>) -> Option<TokenStream> {
    let default = field.attrs.default.as_ref()?.value.as_ref()?;
    if field.attrs.decimal.is_some() {
        let (negative, mantissa, scale) = decimal_literal(default)?;
        let mantissa = proc_macro2::Literal::u128_unsuffixed(mantissa);
        let scale = proc_macro2::Literal::u32_unsuffixed(scale);
        return Some(quote! {
            _idem::DecimalLiteral { negative: #negative, mantissa: #mantissa, scale: #scale }
        });
    }
    Some(match default {
        DefaultValue::EmptyList(span) => quote_spanned!(generated(*span)=> _idem::EmptyList),
        DefaultValue::Literal(literal) => literal.to_token_stream(),
        DefaultValue::Expr(expr) => expr.to_token_stream(),
    })
}

/// The type's own generics, with a bound for each field whose type depends on them.
fn bounds(input: &Input<'_>) -> Generics {
    let mut generics = input.generics.clone();
    let fields = input.body.fields().filter(|field| !field.is_excluded());
    for field in fields.filter(|field| mentions_parameter(input.generics, field.ty)) {
        let ty = field.ty;
        let attributes = attributes(field);
        let mut add = |bound: WherePredicate| generics.make_where_clause().predicates.push(bound);
        if mentions(ty, &|found| found == input.ident || found == "Self") {
            // A bound on the type itself would ask for what is being implemented.
            for parameter in input.generics.type_params().map(|parameter| &parameter.ident) {
                if mentions(ty, &|found| found == parameter) {
                    add(parse_quote!(#parameter: _idem::Canonical<#attributes>));
                }
            }
            continue;
        }
        match field.attrs.default.as_ref().and_then(|given| given.value.as_ref()) {
            Some(DefaultValue::Literal(syn::Lit::Str(_))) if field.attrs.decimal.is_none() => {
                add(parse_quote!(for<'__any> #ty: _idem::AcceptsDefault<&'__any _idem::str, #attributes>));
            }
            Some(DefaultValue::EmptyList(_)) => {
                add(parse_quote!(#ty: _idem::AcceptsDefault<_idem::EmptyList, #attributes>))
            }
            Some(_) if field.attrs.decimal.is_some() => {
                add(parse_quote!(#ty: _idem::AcceptsDefault<_idem::DecimalLiteral, #attributes>));
            }
            _ => add(parse_quote!(#ty: _idem::Canonical<#attributes>)),
        }
    }
    generics
}

fn mentions_parameter(generics: &Generics, ty: &syn::Type) -> bool {
    generics.type_params().any(|parameter| mentions(ty, &|found| *found == parameter.ident))
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

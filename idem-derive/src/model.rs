//! The type as the macro sees it. Borrows from what `syn` parsed.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Generics, Member, Type};

use crate::attr::{
    FieldAttrs, Given, TypeAttrs, VariantAttrs, Wire, denies_unknown_fields, passes_over_unknown_fields,
};
use crate::ctxt::Ctxt;
use crate::krate;

/// Which derive was asked for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Derive {
    /// `#[derive(IdempotentCommand)]`
    Command,
    /// `#[derive(Canonical)]`
    Value,
}

pub(crate) struct Input<'a> {
    pub(crate) derive: Derive,
    pub(crate) ident: &'a Ident,
    pub(crate) generics: &'a Generics,
    pub(crate) attrs: TypeAttrs,
    pub(crate) denies_unknown: bool,
    pub(crate) body: Body<'a>,
}

pub(crate) enum Body<'a> {
    Object(Vec<Field<'a>>),
    Tuple(Vec<Field<'a>>),
    /// One field counts; the others are not written.
    Newtype(Vec<Field<'a>>),
    OneOf(Vec<Variant<'a>>),
    /// Nothing idem can write. The keyword tells where to say so.
    Union(Span),
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) wire: Option<Wire>,
    /// Whether serde passes over members that it does not know, whatever the type says.
    pub(crate) passes_over_unknown: bool,
    pub(crate) fields: Vec<Field<'a>>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Unit,
    Newtype,
    Tuple,
    Object,
}

pub(crate) struct Field<'a> {
    pub(crate) member: Member,
    /// The canonical name.
    pub(crate) name: String,
    pub(crate) attrs: FieldAttrs,
    /// How it comes in, and where that is said.
    pub(crate) wire: Option<(Wire, Span)>,
    pub(crate) ty: &'a Type,
    pub(crate) span: Span,
    /// Whether it is a `PhantomData` in a row, going by the name: how many fields a row has decides what it is. The
    /// expansion makes the compiler check that the name tells the truth. Fields with names need no such thing: a member
    /// of that type is left out because it says so itself.
    pub(crate) is_mark: bool,
}

impl<'a> Input<'a> {
    pub(crate) fn from_syn(ctxt: &Ctxt, derive: Derive, input: &'a DeriveInput) -> Self {
        let attrs = TypeAttrs::parse(ctxt, &input.attrs);
        let case = attrs.rename_all.as_ref().and_then(|given| given.value);
        let rename = |name: String| case.map_or_else(|| name.clone(), |case| case.apply(&name));
        let untagged = Wire::parse(&input.attrs).map(|(wire, _)| wire).filter(|wire| *wire == Wire::Untagged);
        let body = match &input.data {
            Data::Struct(data) => {
                let fields = fields(ctxt, &data.fields, rename);
                match shape(&data.fields, &fields) {
                    Shape::Unit | Shape::Object => Body::Object(fields),
                    Shape::Newtype => Body::Newtype(fields),
                    Shape::Tuple => Body::Tuple(fields),
                }
            }
            Data::Enum(data) => Body::OneOf(
                data.variants
                    .iter()
                    .map(|variant| {
                        let attrs = VariantAttrs::parse(ctxt, &variant.attrs);
                        let own = attrs.rename.as_ref().and_then(|given| given.value.clone());
                        let fields = fields(ctxt, &variant.fields, |name| name);
                        let wire = Wire::parse(&variant.attrs).map(|(wire, _)| wire).or(untagged);
                        Variant {
                            ident: &variant.ident,
                            name: own.unwrap_or_else(|| rename(variant.ident.unraw().to_string())),
                            shape: shape(&variant.fields, &fields),
                            passes_over_unknown: passes_over_unknown_fields(&input.attrs, variant, wire),
                            wire,
                            fields,
                        }
                    })
                    .collect(),
            ),
            Data::Union(data) => Body::Union(data.union_token.span()),
        };
        // serde leaves open what is refused of a type with flattened fields.
        let is_flattened = |field: &Field<'_>| matches!(field.wire, Some((Wire::Flattened, _)));
        let passes_over = match &body {
            Body::OneOf(variants) => variants.iter().any(|variant| variant.passes_over_unknown),
            _ => false,
        };
        let denies_unknown = denies_unknown_fields(&input.attrs) && !passes_over && !body.fields().any(is_flattened);
        Self { derive, ident: &input.ident, generics: &input.generics, attrs, denies_unknown, body }
    }

    /// The version of a command.
    pub(crate) fn version(&self) -> Option<u32> {
        self.attrs.version.as_ref()?.value
    }

    /// The oldest version that is asked for, which is the present one unless `oldest` says otherwise.
    pub(crate) fn own_oldest(&self) -> u32 {
        let oldest = self.attrs.oldest.as_ref().and_then(|given| given.value);
        oldest.or(self.version()).unwrap_or(1)
    }

    /// The lowest `until` of the fields.
    pub(crate) fn until(&self) -> Option<u32> {
        self.body.fields().filter_map(Field::until).min()
    }

    /// The path of idem-core.
    pub(crate) fn krate(&self) -> TokenStream {
        let given = self.attrs.krate.as_ref().and_then(|given| given.value.clone());
        given.unwrap_or_else(krate::path_of_core)
    }
}

impl Body<'_> {
    /// The fields side by side, of all variants in an enum.
    pub(crate) fn fields(&self) -> Box<dyn Iterator<Item = &Field<'_>> + '_> {
        match self {
            Self::Object(fields) | Self::Tuple(fields) | Self::Newtype(fields) => Box::new(fields.iter()),
            Self::OneOf(variants) => Box::new(variants.iter().flat_map(|variant| &variant.fields)),
            Self::Union(_) => Box::new(std::iter::empty()),
        }
    }
}

impl Field<'_> {
    pub(crate) fn is_excluded(&self) -> bool {
        self.attrs.exclude.is_some()
    }

    /// Whether its value is part of the hash.
    pub(crate) fn is_hashed(&self) -> bool {
        !self.is_excluded() && !self.is_mark
    }

    /// The last version that the field was part of.
    pub(crate) fn until(&self) -> Option<u32> {
        self.attrs.until.as_ref()?.value
    }

    /// The attributes that decide how the value is written, by the words the user wrote. One that could not be read is
    /// none: that was reported.
    pub(crate) fn rules(&self) -> Vec<(&'static str, Span)> {
        let attrs = &self.attrs;
        let rules = [
            said("decimal", &attrs.decimal),
            said("trim", &attrs.trim),
            said("uppercase", &attrs.uppercase),
            said("lowercase", &attrs.lowercase),
            said("verbatim", &attrs.verbatim),
            said("float", &attrs.float),
            said("digest", &attrs.digest),
            said("timestamp", &attrs.timestamp),
            said("with", &attrs.with),
            said("unordered", &attrs.unordered),
        ];
        rules.into_iter().flatten().collect()
    }
}

/// A word and its place, if what it says could be read.
pub(crate) fn said<T>(word: &'static str, given: &Option<Given<T>>) -> Option<(&'static str, Span)> {
    given.as_ref().filter(|given| given.value.is_some()).map(|given| (word, given.span))
}

fn fields<'a>(ctxt: &Ctxt, fields: &'a Fields, rename: impl Fn(String) -> String) -> Vec<Field<'a>> {
    fields
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let attrs = FieldAttrs::parse(ctxt, &field.attrs);
            let own = attrs.rename.as_ref().and_then(|given| given.value.clone());
            let (member, name) = match &field.ident {
                Some(ident) => (Member::Named(ident.clone()), rename(ident.unraw().to_string())),
                None => (Member::Unnamed(index.into()), index.to_string()),
            };
            let span = field.ident.as_ref().map_or_else(|| field.ty.span(), Ident::span);
            let wire = Wire::parse(&field.attrs);
            let is_mark = field.ident.is_none() && attrs.exclude.is_none() && is_called_phantom(&field.ty);
            Field { member, name: own.unwrap_or(name), attrs, wire, ty: &field.ty, span, is_mark }
        })
        .collect()
}

fn shape(declared: &Fields, fields: &[Field<'_>]) -> Shape {
    match declared {
        Fields::Unit => Shape::Unit,
        Fields::Named(_) => Shape::Object,
        Fields::Unnamed(_) if fields.iter().filter(|field| field.is_hashed()).count() == 1 => Shape::Newtype,
        Fields::Unnamed(_) => Shape::Tuple,
    }
}

pub(crate) fn is_called_phantom(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "PhantomData"),
        Type::Group(group) => is_called_phantom(&group.elem),
        Type::Paren(paren) => is_called_phantom(&paren.elem),
        _ => false,
    }
}

/// Whether the identifier stands anywhere in the tokens.
pub(crate) fn mentions(tokens: impl ToTokens, ident: &dyn Fn(&Ident) -> bool) -> bool {
    tokens.into_token_stream().into_iter().any(|token| match token {
        TokenTree::Ident(found) => ident(&found),
        TokenTree::Group(group) => mentions(group.stream(), ident),
        _ => false,
    })
}

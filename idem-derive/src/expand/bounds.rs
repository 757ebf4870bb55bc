//! What a generic type asks of its parameters: that what is hashed has a canonical form, and no more.
//!
//! A parameter that is hashed itself is bounded, wherever the standard library's holders put it. Any other type is
//! bounded as a whole, since what it asks of its own parameters is not known here. Not so where its parameters are bounded
//! already: two types that hold each other would ask for each other without end. A spelling that misleads this file
//! gives a bound too much or too little, which the compiler tells; it never decides what is hashed.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{GenericArgument, Generics, PathArguments, PathSegment, Type, TypePath, WherePredicate, parse_quote};

use super::attributes_of_each;
use crate::attr::DefaultValue;
use crate::model::{Field, Input, mentions};

/// The type's own generics with the bounds that the fields need, or with those that `bound` gives.
pub(super) fn bounds(input: &Input<'_>) -> Generics {
    let mut generics = input.generics.clone();
    let given = input.attrs.bound.as_ref().and_then(|given| given.value.clone());
    let predicates = given.unwrap_or_else(|| derived(input));
    if !predicates.is_empty() {
        generics.make_where_clause().predicates.extend(predicates);
    }
    generics
}

fn derived(input: &Input<'_>) -> Vec<WherePredicate> {
    let mut bounds = Bounds { input, direct: HashSet::new(), unknown: Vec::new(), predicates: Vec::new() };
    for field in input.body.fields().filter(|field| field.is_hashed()) {
        if bounds.is_generic(field.ty) {
            bounds.field(field);
        }
    }
    for unknown in std::mem::take(&mut bounds.unknown) {
        bounds.unknown(unknown);
    }
    let own = input.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let mut seen: HashSet<String> = own.map(|predicate| predicate.to_token_stream().to_string()).collect();
    bounds.predicates.retain(|predicate| seen.insert(predicate.to_token_stream().to_string()));
    bounds.predicates
}

/// The attributes of a field, on their way to what it holds.
#[derive(Clone)]
struct Attributes {
    each: TokenStream,
    is_unordered: bool,
}

impl Attributes {
    fn of(field: &Field<'_>) -> Self {
        Self { each: attributes_of_each(field), is_unordered: field.attrs.unordered.is_some() }
    }

    /// What is left of them in a list.
    fn of_elements(&self) -> Self {
        Self { each: self.each.clone(), is_unordered: false }
    }
}

impl ToTokens for Attributes {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let each = &self.each;
        tokens.extend(if self.is_unordered { quote!(_idem::unordered<#each>) } else { quote!(#each) });
    }
}

/// A type that is made of parameters in a way that is not known here.
struct Unknown {
    ty: Type,
    attributes: Attributes,
    bound: WherePredicate,
}

impl Unknown {
    fn new(ty: &Type, attributes: &Attributes) -> Self {
        let bound = parse_quote!(#ty: _idem::Canonical<#attributes>);
        Self { ty: ty.clone(), attributes: attributes.clone(), bound }
    }
}

struct Bounds<'a> {
    input: &'a Input<'a>,
    /// The parameters that are hashed themselves, each with its attributes.
    direct: HashSet<(String, String)>,
    /// The types of other crates and of the user's, by what they are called here.
    unknown: Vec<Unknown>,
    predicates: Vec<WherePredicate>,
}

impl Bounds<'_> {
    fn field(&mut self, field: &Field<'_>) {
        let ty = field.ty;
        let attributes = Attributes::of(field);
        let default = field.attrs.default.as_ref().and_then(|given| given.value.as_ref());
        match default {
            _ if self.names_itself(ty) => self.hashed(ty, &attributes),
            Some(_) if field.attrs.decimal.is_some() => {
                self.add(parse_quote!(#ty: _idem::AcceptsDefault<_idem::DecimalLiteral, #attributes>));
            }
            Some(DefaultValue::Literal(syn::Lit::Str(_))) => {
                self.add(parse_quote!(for<'__any> #ty: _idem::AcceptsDefault<&'__any _idem::str, #attributes>));
            }
            Some(DefaultValue::EmptyList(_)) if !is_list(ty) => {
                let bound = parse_quote!(#ty: _idem::AcceptsDefault<_idem::EmptyList, #attributes>);
                // What has parameters may be another name of a list. A parameter itself is bounded as it is.
                if is_made_of_types(behind_pointers(ty)) {
                    self.unknown.push(Unknown { ty: ty.clone(), attributes, bound });
                } else {
                    self.add(bound);
                }
            }
            // A digest is of a whole list, and says nothing of its elements.
            _ if field.attrs.digest.is_some() => self.add(parse_quote!(#ty: _idem::Canonical<#attributes>)),
            _ => self.hashed(ty, &attributes),
        }
    }

    /// The bounds that make a type hashable, from the outside in.
    fn hashed(&mut self, ty: &Type, attributes: &Attributes) {
        if !self.is_generic(ty) {
            return;
        }
        let ty = peeled(ty);
        match ty {
            Type::Reference(reference) => self.hashed(&reference.elem, attributes),
            Type::Slice(list) => self.hashed(&list.elem, &attributes.of_elements()),
            Type::Array(list) => self.hashed(&list.elem, &attributes.of_elements()),
            Type::Tuple(row) => row.elems.iter().for_each(|elem| self.hashed(elem, attributes)),
            Type::Path(path) if self.is_itself(path) => {}
            Type::Path(path) => self.hashed_path(ty, path, attributes),
            other => self.unknown.push(Unknown::new(other, attributes)),
        }
    }

    fn hashed_path(&mut self, ty: &Type, path: &TypePath, attributes: &Attributes) {
        if let Some(parameter) = path.path.get_ident().filter(|ident| self.is_parameter(ident)) {
            self.direct.insert((parameter.to_string(), attributes.to_token_stream().to_string()));
            return self.add(parse_quote!(#parameter: _idem::Canonical<#attributes>));
        }
        let segment = path.path.segments.last();
        let held: Vec<_> = segment.into_iter().flat_map(types_in).collect();
        let holder = segment.map(|segment| segment.ident.to_string()).unwrap_or_default();
        match (holder.as_str(), held.as_slice()) {
            _ if path.qself.is_some() => self.unknown.push(Unknown::new(ty, attributes)),
            (pointer, [held]) if POINTERS.contains(&pointer) => self.hashed(held, attributes),
            (list, [held, ..]) if LISTS.contains(&list) => self.hashed(held, &attributes.of_elements()),
            (map, [key, value, ..]) if MAPS.contains(&map) => {
                if self.is_generic(key) {
                    self.add(parse_quote!(#key: _idem::MapKey));
                }
                self.hashed(value, attributes);
            }
            _ => self.unknown.push(Unknown::new(ty, attributes)),
        }
    }

    fn unknown(&mut self, unknown: Unknown) {
        let Unknown { ty, attributes, bound } = unknown;
        if self.names_itself(&ty) {
            // A bound on the whole would ask for what is being implemented.
            if let Type::Path(path) = &ty {
                let held = path.path.segments.last().into_iter().flat_map(types_in);
                held.for_each(|held| self.hashed(held, &attributes));
                for unknown in std::mem::take(&mut self.unknown) {
                    self.unknown(unknown);
                }
            }
        } else if !self.is_bounded(&ty, &attributes) {
            self.add(bound);
        }
    }

    /// Whether all that the type is made of is bounded already. What belongs to a parameter is another type than it.
    fn is_bounded(&self, ty: &Type, attributes: &Attributes) -> bool {
        let is_path = matches!(ty, Type::Path(path) if path.qself.is_none());
        let attributes = attributes.to_token_stream().to_string();
        let generics = self.input.generics;
        let mut parameters =
            generics.type_params().filter(|parameter| mentions(ty, &|found| *found == parameter.ident));
        is_path
            && !has_associated(ty.to_token_stream(), &|ident| self.is_parameter(ident))
            && parameters.all(|parameter| self.direct.contains(&(parameter.ident.to_string(), attributes.clone())))
    }

    fn add(&mut self, predicate: WherePredicate) {
        self.predicates.push(predicate);
    }

    fn is_generic(&self, ty: &Type) -> bool {
        mentions(ty, &|found| self.is_parameter(found) || found == "Self")
    }

    fn is_parameter(&self, ident: &Ident) -> bool {
        self.input.generics.type_params().any(|parameter| parameter.ident == *ident)
    }

    fn names_itself(&self, ty: &Type) -> bool {
        mentions(ty, &|found| found == self.input.ident || found == "Self")
    }

    /// Whether this is the type itself with its own parameters, which needs no bound: it is what is implemented.
    fn is_itself(&self, path: &TypePath) -> bool {
        let Some(segment) = path.path.segments.last().filter(|_| path.qself.is_none() && path.path.segments.len() == 1)
        else {
            return false;
        };
        let parameters = self.input.generics.type_params().map(|parameter| parameter.ident.to_string());
        let types = types_in(segment).into_iter().map(|held| held.to_token_stream().to_string());
        segment.ident == "Self" || segment.ident == *self.input.ident && types.eq(parameters)
    }
}

/// Whether an associated type of a parameter stands in the tokens: `K::Id`, `<K as Kind>::Id`.
fn has_associated(tokens: TokenStream, is_parameter: &dyn Fn(&Ident) -> bool) -> bool {
    let mut before_is_parameter = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) if before_is_parameter && ident == "as" => true,
        TokenTree::Punct(punct) if before_is_parameter && punct.as_char() == ':' => true,
        TokenTree::Group(group) => has_associated(group.stream(), is_parameter),
        TokenTree::Ident(ident) => {
            before_is_parameter = is_parameter(&ident);
            false
        }
        _ => {
            before_is_parameter = false;
            false
        }
    })
}

/// Whether the type is a list, behind whatever may be absent or points to it.
fn is_list(ty: &Type) -> bool {
    match behind_pointers(ty) {
        Type::Slice(_) | Type::Array(_) => true,
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|segment| LISTS.contains(&&*segment.ident.to_string()))
        }
        _ => false,
    }
}

fn is_made_of_types(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.iter().any(|segment| !types_in(segment).is_empty()))
}

/// What may be absent, or is pointed to.
fn behind_pointers(ty: &Type) -> &Type {
    match peeled(ty) {
        Type::Reference(reference) => behind_pointers(&reference.elem),
        Type::Path(path) => match path.path.segments.last() {
            Some(segment) if POINTERS.contains(&&*segment.ident.to_string()) => match types_in(segment).as_slice() {
                [held] => behind_pointers(held),
                _ => peeled(ty),
            },
            _ => peeled(ty),
        },
        ty => ty,
    }
}

/// The types in the angle brackets of a path.
fn types_in(segment: &PathSegment) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

/// Without the invisible groups that `macro_rules!` puts around a type, and without brackets.
fn peeled(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peeled(&group.elem),
        Type::Paren(paren) => peeled(&paren.elem),
        ty => ty,
    }
}

/// The standard library's holders of one value.
const POINTERS: [&str; 5] = ["Arc", "Box", "Cow", "Option", "Rc"];

/// The standard library's lists and sets.
const LISTS: [&str; 4] = ["BTreeSet", "HashSet", "Vec", "VecDeque"];

/// The standard library's maps.
const MAPS: [&str; 2] = ["BTreeMap", "HashMap"];

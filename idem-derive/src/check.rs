//! What each attribute alone cannot tell: rules across the fields of a type.

mod versions;

use std::collections::HashSet;

use proc_macro2::Span;

use crate::attr::{Wire, decimal_literal};
use crate::ctxt::Ctxt;
use crate::model::{Body, Derive, Field, Input, Shape, is_called_phantom, said};

pub(crate) fn check(ctxt: &Ctxt, input: &Input<'_>) {
    check_not_a_union(ctxt, input);
    check_has_variants(ctxt, input);
    check_command_is_named(ctxt, input);
    check_value_is_no_command(ctxt, input);
    versions::check(ctxt, input);
    check_something_to_hash(ctxt, input);
    check_names_are_unique(ctxt, input);
    for field in input.body.fields() {
        check_excluded_alone(ctxt, field);
        check_rules_agree(ctxt, field);
        check_no_default_under_with(ctxt, field);
        check_decimal_default(ctxt, field);
    }
    check_only_members_have_names_and_defaults(ctxt, input);
}

/// A union does not know which of its fields holds.
fn check_not_a_union(ctxt: &Ctxt, input: &Input<'_>) {
    if let Body::Union(span) = input.body {
        ctxt.error(span, "a union has no canonical form: which field holds is not known; use an enum");
    }
}

/// An enum without variants has no values.
fn check_has_variants(ctxt: &Ctxt, input: &Input<'_>) {
    if let Body::OneOf(variants) = &input.body
        && variants.is_empty()
    {
        ctxt.error(input.ident.span(), "an enum without variants has no values to hash");
    }
}

/// A command is hashed under an operation and a version. Neither can be taken from the source: moving or renaming the
/// type would change hashes that live records keep.
fn check_command_is_named(ctxt: &Ctxt, input: &Input<'_>) {
    if input.derive != Derive::Command {
        return;
    }
    match &input.attrs.operation {
        None => ctxt.error(
            input.ident.span(),
            "a command needs the name it is hashed under: `#[idem(operation = \"…\", version = 1)]`",
        ),
        Some(given) => {
            if let Some(operation) = &given.value
                && !is_operation(operation)
            {
                ctxt.error(
                    given.span,
                    "an operation is a name of ASCII letters, digits, `_`, `-` and `.`, such as `create_payment`",
                );
            }
        }
    }
    if input.attrs.version.is_none() {
        ctxt.error(
            input.ident.span(),
            "a command needs the version of its contract, so that a later one can tell: `#[idem(version = 1)]`",
        );
    }
}

fn is_operation(operation: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !operation.is_empty() && operation.bytes().all(is_plain)
}

/// `operation` and `version` on a plain value would be ignored.
fn check_value_is_no_command(ctxt: &Ctxt, input: &Input<'_>) {
    if input.derive != Derive::Value {
        return;
    }
    let attrs = &input.attrs;
    let spans = [
        ("operation", attrs.operation.as_ref().map(|given| given.span)),
        ("version", attrs.version.as_ref().map(|given| given.span)),
        ("oldest", attrs.oldest.as_ref().map(|given| given.span)),
        ("writes", attrs.writes.as_ref().map(|given| given.span)),
        ("previous", attrs.previous.as_ref().map(|given| given.span)),
        ("allow_empty", attrs.allow_empty.as_ref().map(|given| given.span)),
    ];
    for (word, span) in spans {
        if let Some(span) = span {
            ctxt.error(
                span,
                format!("`{word}` is for `#[derive(IdempotentCommand)]`, which implements `Canonical` as well"),
            );
        }
    }
}

/// Every request would be the same command, whatever it asks for.
fn check_something_to_hash(ctxt: &Ctxt, input: &Input<'_>) {
    if input.derive != Derive::Command || input.attrs.allow_empty.is_some() {
        return;
    }
    // What could not be read may be what is missing here.
    if input.attrs.is_broken || input.body.fields().any(|field| field.attrs.is_broken) {
        return;
    }
    let counts = |fields: &[Field<'_>]| {
        fields.iter().any(|field| field.is_hashed() && field.attrs.until.is_none() && !is_called_phantom(field.ty))
    };
    let is_empty = match &input.body {
        Body::Object(fields) | Body::Tuple(fields) | Body::Newtype(fields) => !counts(fields),
        // The name of the only variant tells nothing.
        Body::OneOf(variants) => matches!(variants.as_slice(), [only] if !counts(&only.fields)),
        Body::Union(_) => false,
    };
    if is_empty {
        ctxt.error(
            input.ident.span(),
            "nothing is left to hash, so any two requests would be the same command; if that is meant, say \
             `#[idem(allow_empty)]`",
        );
    }
}

/// One name, one member: with two, one of the values would be lost.
fn check_names_are_unique(ctxt: &Ctxt, input: &Input<'_>) {
    let unique = |names: &mut dyn Iterator<Item = (&str, Span)>| {
        let mut seen = HashSet::new();
        for (name, span) in names {
            if !seen.insert(name) {
                ctxt.error(span, format!("a second `{name}`: canonical names are unique, see `rename`"));
            }
        }
    };
    let is_named = |field: &&Field<'_>| field.attrs.rename.as_ref().is_none_or(|given| given.value.is_some());
    let members = |fields: &[Field<'_>]| {
        unique(&mut fields.iter().filter(is_named).map(|field| (field.name.as_str(), field.span)));
    };
    match &input.body {
        Body::Object(fields) => members(fields),
        Body::OneOf(variants) => {
            unique(&mut variants.iter().map(|variant| (variant.name.as_str(), variant.ident.span())));
            variants.iter().filter(|variant| variant.shape == Shape::Object).for_each(|v| members(&v.fields));
        }
        Body::Tuple(_) | Body::Newtype(_) | Body::Union(_) => {}
    }
}

/// An excluded field is not written, so nothing can be said of how.
fn check_excluded_alone(ctxt: &Ctxt, field: &Field<'_>) {
    if !field.is_excluded() {
        return;
    }
    let attrs = &field.attrs;
    let others = [said("default", &attrs.default), said("until", &attrs.until)];
    for (word, span) in field.rules().into_iter().chain(others.into_iter().flatten()) {
        ctxt.error(span, format!("`{word}` has no effect on an excluded field; take one of the two out"));
    }
}

/// Rules that undo each other, or that are for different types.
fn check_rules_agree(ctxt: &Ctxt, field: &Field<'_>) {
    let rules = field.rules();
    for (at, (word, span)) in rules.iter().enumerate() {
        let clash = rules[..at].iter().map(|(earlier, _)| *earlier).find_map(|earlier| match (earlier, *word) {
            ("uppercase", "lowercase") => Some("a text has one case"),
            ("trim" | "uppercase" | "lowercase", "verbatim") => Some("verbatim text stays as it was sent"),
            ("trim", "uppercase" | "lowercase") => None,
            ("digest", "unordered") => Some("the order of bytes counts"),
            (_, "unordered") => None,
            (_, "with") => Some("a rule of your own says all of how the value is written"),
            _ => Some("they are for different types"),
        });
        if let Some(reason) = clash {
            let others: Vec<_> = rules[..at].iter().map(|(earlier, _)| format!("`{earlier}`")).collect();
            ctxt.error(*span, format!("`{word}` does not go with {}: {reason}", others.join(" and ")));
        }
    }
}

/// What a rule of the user's own makes of a default is not known here.
fn check_no_default_under_with(ctxt: &Ctxt, field: &Field<'_>) {
    if field.attrs.with.is_some()
        && let Some((_, span)) = said("default", &field.attrs.default)
    {
        ctxt.error(span, "`default` does not go with `with`; use an `Option` without a default");
    }
}

/// A decimal default is read here, exactly.
fn check_decimal_default(ctxt: &Ctxt, field: &Field<'_>) {
    let Some(given) = &field.attrs.default else { return };
    if field.attrs.decimal.is_some()
        && let Some(default) = &given.value
        && decimal_literal(default).is_none()
    {
        ctxt.error(given.span, "the default of a decimal is a plain number of at most 28 places: `default = \"0.00\"`");
    }
}

/// An element of a row cannot be left out, and has a place instead of a name.
fn check_only_members_have_names_and_defaults(ctxt: &Ctxt, input: &Input<'_>) {
    let rows: Vec<&[Field<'_>]> = match &input.body {
        Body::Tuple(fields) | Body::Newtype(fields) => vec![fields],
        Body::OneOf(variants) => {
            variants.iter().filter(|variant| variant.shape != Shape::Object).map(|v| v.fields.as_slice()).collect()
        }
        Body::Object(_) | Body::Union(_) => Vec::new(),
    };
    for field in rows.into_iter().flatten() {
        if let Some((_, span)) = said("default", &field.attrs.default) {
            ctxt.error(span, "a default needs a member that can be left out; give the field a name");
        }
        if let Some((_, span)) = said("rename", &field.attrs.rename) {
            ctxt.error(span, "a field without a name is known by its place; give it a name to rename it");
        }
        if let Some((Wire::NotDeserialized, span)) = field.wire
            && field.is_hashed()
        {
            ctxt.error(
                span,
                "serde does not read this value, so what a client sends for it makes no difference; exclude it, or give \
                 it a name, which the contract can tell",
            );
        }
        if let Some((_, span)) = said("until", &field.attrs.until) {
            ctxt.error(span, "a field without a name cannot go: those behind it would move; keep it in `previous`");
        }
    }
}

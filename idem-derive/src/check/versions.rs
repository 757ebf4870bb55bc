//! The versions of a command, as far as its own attributes tell. What `previous` says is checked by the compiler.

use crate::ctxt::Ctxt;
use crate::model::{Derive, Input};

pub(super) fn check(ctxt: &Ctxt, input: &Input<'_>) {
    if input.derive == Derive::Value {
        return check_value_has_no_until(ctxt, input);
    }
    let Some(version) = input.version() else { return };
    check_oldest(ctxt, input, version);
    check_writes(ctxt, input, version);
    check_until(ctxt, input, version);
}

/// A value is in commands of many versions, and has none of its own.
fn check_value_has_no_until(ctxt: &Ctxt, input: &Input<'_>) {
    for given in input.body.fields().filter_map(|field| field.attrs.until.as_ref()) {
        ctxt.error(
            given.span,
            "`until` is for the fields of a command, which has versions; freeze this type as it is now, and use the \
             frozen one in the command's `previous`",
        );
    }
}

fn check_oldest(ctxt: &Ctxt, input: &Input<'_>, version: u32) {
    if let Some(given) = &input.attrs.oldest
        && given.value.is_some_and(|oldest| oldest > version)
    {
        ctxt.error(given.span, format!("`oldest` is above `version = {version}`: a command keeps its own version"));
    }
}

fn check_writes(ctxt: &Ctxt, input: &Input<'_>, version: u32) {
    let Some(given) = &input.attrs.writes else { return };
    let Some(writes) = given.value else { return };
    if writes > version {
        ctxt.error(given.span, format!("`writes` is above `version = {version}`: those rules are not known here"));
    } else if input.attrs.previous.is_none() && writes < input.own_oldest() {
        ctxt.error(
            given.span,
            format!("version {writes} is not kept; say `oldest = {writes}`, or give its struct with `previous`"),
        );
    }
}

/// A field that no version hashes would be one that is silently excluded.
fn check_until(ctxt: &Ctxt, input: &Input<'_>, version: u32) {
    for given in input.body.fields().filter_map(|field| field.attrs.until.as_ref()) {
        let Some(until) = given.value else { continue };
        if until >= version {
            ctxt.error(
                given.span,
                format!("`until` names the last version that had the field, which is before `version = {version}`"),
            );
        } else if input.attrs.previous.is_none() && until < input.own_oldest() {
            ctxt.error(
                given.span,
                format!(
                    "version {until} is not kept, so the field is never hashed: say `oldest = {until}`, or exclude it"
                ),
            );
        }
    }
}

//! Reads what stands after each word.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, LitStr, Token, Type, WherePredicate};

use super::item::{Item, Value, list_items};
use super::word::{Place, nearest, unknown};
use super::{Decimal, DefaultValue, Given};
use crate::case::Case;
use crate::ctxt::Ctxt;

pub(super) fn once<T>(ctxt: &Ctxt, slot: &mut Option<Given<T>>, item: &Item, read: fn(&Ctxt, &Item) -> Option<T>) {
    let value = read(ctxt, item);
    if slot.is_some() {
        ctxt.error(item.span, format!("`{}` is given twice; which one counts would be a guess", item.word));
    } else {
        *slot = Some(Given { span: item.span, value });
    }
}

pub(super) fn flag(ctxt: &Ctxt, item: &Item) -> Option<()> {
    match item.value {
        Value::None => return Some(()),
        Value::Broken => {}
        _ => ctxt.error(item.span, format!("`{0}` takes no value; write `{0}` alone", item.word)),
    }
    None
}

pub(super) fn string(ctxt: &Ctxt, item: &Item) -> Option<String> {
    literal_string(ctxt, item).map(|literal| literal.value())
}

pub(super) fn literal_string(ctxt: &Ctxt, item: &Item) -> Option<LitStr> {
    let word = &item.word;
    match &item.value {
        Value::Expr(expr) => match &**expr {
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => return Some(literal.clone()),
            other => ctxt.error(other.span(), format!("`{word}` is a string literal: `{word} = \"…\"`")),
        },
        Value::Broken => {}
        _ => ctxt.error(item.span, format!("`{word}` needs a string: `{word} = \"…\"`")),
    }
    None
}

pub(super) fn version(ctxt: &Ctxt, item: &Item) -> Option<u32> {
    whole_number(ctxt, item, 1..=i32::MAX as u32, &format!("a version is a whole number from 1: `{} = 1`", item.word))
}

pub(super) fn previous(ctxt: &Ctxt, item: &Item) -> Option<Type> {
    match &item.value {
        Value::Type(previous) => return Some((**previous).clone()),
        Value::Broken => {}
        _ => {
            ctxt.error(item.span, "`previous` is the frozen struct of the version before: `previous = CreatePaymentV1`")
        }
    }
    None
}

pub(super) fn whole_number(ctxt: &Ctxt, item: &Item, range: std::ops::RangeInclusive<u32>, rule: &str) -> Option<u32> {
    match &item.value {
        Value::Expr(expr) => {
            if let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = &**expr
                && literal.suffix().is_empty()
                && let Ok(number) = literal.base10_parse()
                && range.contains(&number)
            {
                return Some(number);
            }
            ctxt.error(expr.span(), rule);
        }
        Value::Broken => {}
        _ => ctxt.error(item.span, rule),
    }
    None
}

pub(super) fn case(ctxt: &Ctxt, item: &Item) -> Option<Case> {
    let literal = literal_string(ctxt, item)?;
    let case = Case::named(&literal.value());
    if case.is_none() {
        let hint = match nearest(&literal.value(), Case::NAMES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it is one of `{}`", Case::NAMES.join("`, `")),
        };
        ctxt.error(literal.span(), format!("not a case that idem knows; {hint}"));
    }
    case
}

pub(super) fn path(ctxt: &Ctxt, item: &Item, rule: &str) -> Option<TokenStream> {
    match &item.value {
        Value::Expr(expr) => match &**expr {
            Expr::Path(path) => return Some(path.to_token_stream()),
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => match literal.parse::<syn::Path>() {
                Ok(path) => return Some(path.to_token_stream()),
                Err(_) => ctxt.error(literal.span(), format!("not a path; {rule}")),
            },
            other => ctxt.error(other.span(), rule),
        },
        Value::Broken => {}
        _ => ctxt.error(item.span, rule),
    }
    None
}

pub(super) fn bound(ctxt: &Ctxt, item: &Item) -> Option<Vec<WherePredicate>> {
    let literal = literal_string(ctxt, item)?;
    let bounds = literal.parse_with(Punctuated::<WherePredicate, Token![,]>::parse_terminated);
    if bounds.is_err() {
        ctxt.error(literal.span(), "not a bound; `bound` says what stands behind `where`: `bound = \"T: Canonical\"`");
    }
    bounds.ok().map(|bounds| bounds.into_iter().collect())
}

pub(super) fn default(ctxt: &Ctxt, item: &Item) -> Option<DefaultValue> {
    match &item.value {
        Value::EmptyList(span) => Some(DefaultValue::EmptyList(*span)),
        Value::Expr(expr) => Some(match &**expr {
            Expr::Lit(literal) => DefaultValue::Literal(literal.lit.clone()),
            expr => DefaultValue::Expr(Box::new(expr.clone())),
        }),
        Value::Broken => None,
        Value::None | Value::List(_) | Value::Type(_) => {
            ctxt.error(item.span, "`default` needs the value that absence stands for: `default = \"web\"`");
            None
        }
    }
}

pub(super) fn decimal(ctxt: &Ctxt, item: &Item) -> Option<Decimal> {
    const RULE: &str = "`decimal` says how many places are written at least: `decimal(scale = 2)`";
    let (mut scale, mut round) = (None, None);
    for item in inner_items(ctxt, item, RULE)? {
        match item.word.as_str() {
            "scale" => once(ctxt, &mut scale, &item, |ctxt, item| {
                whole_number(ctxt, item, 0..=28, "a scale is a whole number from 0 to 28, what a `Decimal` can hold")
            }),
            "round" => once(ctxt, &mut round, &item, |ctxt, item| {
                one_of(ctxt, item, &["half_even", "half_up"], "amounts are rounded `half_even` or `half_up`")
            }),
            _ => {
                unknown(ctxt, &item.word, item.span, Place::Decimal);
            }
        }
    }
    match scale {
        Some(scale) => Some(Decimal { scale: scale.value?, round: round.and_then(|round| round.value) }),
        None => {
            if round.is_some() {
                ctxt.error(item.span, RULE);
            }
            None
        }
    }
}

pub(super) fn timestamp(ctxt: &Ctxt, item: &Item) -> Option<&'static str> {
    const RULE: &str = "`timestamp` says what an instant is cut to: `timestamp(precision = \"ms\")`";
    let mut precision = None;
    for item in inner_items(ctxt, item, RULE)? {
        match item.word.as_str() {
            "precision" => once(ctxt, &mut precision, &item, |ctxt, item| {
                one_of(ctxt, item, &["s", "ms", "us"], "an instant is cut to `s`, `ms` or `us`; without, it is exact")
            }),
            _ => {
                unknown(ctxt, &item.word, item.span, Place::Timestamp);
            }
        }
    }
    precision?.value
}

/// The words in the brackets of an attribute that has to have some.
pub(super) fn inner_items(ctxt: &Ctxt, item: &Item, rule: &str) -> Option<Vec<Item>> {
    match &item.value {
        Value::List(tokens) if !tokens.is_empty() => return Some(list_items(ctxt, tokens.clone(), item.span)),
        Value::Broken => {}
        _ => ctxt.error(item.span, rule),
    }
    None
}

pub(super) fn one_of(ctxt: &Ctxt, item: &Item, known: &[&'static str], rule: &str) -> Option<&'static str> {
    let literal = literal_string(ctxt, item)?;
    let found = known.iter().find(|known| **known == literal.value()).copied();
    if found.is_none() {
        ctxt.error(literal.span(), rule);
    }
    found
}

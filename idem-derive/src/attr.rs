//! Parses `#[idem(…)]`, keeping the span of every word.

mod decimal;
mod item;
mod read;
mod serde;
mod word;

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Expr, Lit, Type, WherePredicate};

pub(crate) use self::decimal::decimal_literal;
use self::item::items;
use self::read::{bound, case, decimal, default, flag, once, path, previous, string, timestamp, version};
pub(crate) use self::serde::{Wire, denies_unknown_fields, passes_over_unknown_fields};
use self::word::{Place, unknown};
use crate::case::Case;
use crate::ctxt::Ctxt;

/// An attribute that was given, and what it said, unless that was reported already.
pub(crate) struct Given<T> {
    pub(crate) span: Span,
    pub(crate) value: Option<T>,
}

/// The attributes of a struct or enum.
#[derive(Default)]
pub(crate) struct TypeAttrs {
    pub(crate) operation: Option<Given<String>>,
    pub(crate) version: Option<Given<u32>>,
    pub(crate) oldest: Option<Given<u32>>,
    pub(crate) writes: Option<Given<u32>>,
    pub(crate) previous: Option<Given<Type>>,
    pub(crate) allow_empty: Option<Given<()>>,
    pub(crate) rename_all: Option<Given<Case>>,
    pub(crate) bound: Option<Given<Vec<WherePredicate>>>,
    pub(crate) krate: Option<Given<TokenStream>>,
    /// Whether something here could not be read.
    pub(crate) is_broken: bool,
}

/// The attributes of a variant.
#[derive(Default)]
pub(crate) struct VariantAttrs {
    pub(crate) rename: Option<Given<String>>,
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) exclude: Option<Given<()>>,
    pub(crate) until: Option<Given<u32>>,
    pub(crate) rename: Option<Given<String>>,
    pub(crate) default: Option<Given<DefaultValue>>,
    pub(crate) decimal: Option<Given<Decimal>>,
    pub(crate) uppercase: Option<Given<()>>,
    pub(crate) lowercase: Option<Given<()>>,
    pub(crate) trim: Option<Given<()>>,
    pub(crate) verbatim: Option<Given<()>>,
    pub(crate) float: Option<Given<()>>,
    pub(crate) digest: Option<Given<()>>,
    pub(crate) timestamp: Option<Given<&'static str>>,
    pub(crate) unordered: Option<Given<()>>,
    pub(crate) with: Option<Given<TokenStream>>,
    /// Whether something here could not be read.
    pub(crate) is_broken: bool,
}

/// `decimal(scale = N, round = "…")`.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(crate) scale: u32,
    pub(crate) round: Option<&'static str>,
}

/// What stands after `default =`.
pub(crate) enum DefaultValue {
    /// `[]`, and where it stands.
    EmptyList(Span),
    Literal(Lit),
    /// A negative literal or any other expression.
    Expr(Box<Expr>),
}

impl TypeAttrs {
    pub(crate) fn parse(ctxt: &Ctxt, attrs: &[Attribute]) -> Self {
        let errors = ctxt.count();
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "operation" => once(ctxt, &mut parsed.operation, &item, string),
                "version" => once(ctxt, &mut parsed.version, &item, version),
                "oldest" => once(ctxt, &mut parsed.oldest, &item, version),
                "writes" => once(ctxt, &mut parsed.writes, &item, version),
                "previous" => once(ctxt, &mut parsed.previous, &item, previous),
                "allow_empty" => once(ctxt, &mut parsed.allow_empty, &item, flag),
                "rename_all" => once(ctxt, &mut parsed.rename_all, &item, case),
                "bound" => once(ctxt, &mut parsed.bound, &item, bound),
                "crate" => once(ctxt, &mut parsed.krate, &item, |ctxt, item| {
                    path(ctxt, item, "`crate` is the path of idem-core: `crate = my_sdk::idem`")
                }),
                // What was meant is not missing.
                _ => match unknown(ctxt, &item.word, item.span, Place::Type) {
                    Some("operation") => parsed.operation = Some(Given { span: item.span, value: None }),
                    Some("version") => parsed.version = Some(Given { span: item.span, value: None }),
                    _ => {}
                },
            }
        }
        parsed.is_broken = ctxt.count() > errors;
        parsed
    }
}

impl VariantAttrs {
    pub(crate) fn parse(ctxt: &Ctxt, attrs: &[Attribute]) -> Self {
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "rename" => once(ctxt, &mut parsed.rename, &item, string),
                _ => {
                    unknown(ctxt, &item.word, item.span, Place::Variant);
                }
            }
        }
        parsed
    }
}

impl FieldAttrs {
    pub(crate) fn parse(ctxt: &Ctxt, attrs: &[Attribute]) -> Self {
        let errors = ctxt.count();
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "exclude" => once(ctxt, &mut parsed.exclude, &item, flag),
                "until" => once(ctxt, &mut parsed.until, &item, version),
                "rename" => once(ctxt, &mut parsed.rename, &item, string),
                "default" => once(ctxt, &mut parsed.default, &item, default),
                "decimal" => once(ctxt, &mut parsed.decimal, &item, decimal),
                "uppercase" => once(ctxt, &mut parsed.uppercase, &item, flag),
                "lowercase" => once(ctxt, &mut parsed.lowercase, &item, flag),
                "trim" => once(ctxt, &mut parsed.trim, &item, flag),
                "verbatim" => once(ctxt, &mut parsed.verbatim, &item, flag),
                "float" => once(ctxt, &mut parsed.float, &item, flag),
                "digest" => once(ctxt, &mut parsed.digest, &item, flag),
                "timestamp" => once(ctxt, &mut parsed.timestamp, &item, timestamp),
                "unordered" => once(ctxt, &mut parsed.unordered, &item, flag),
                "with" => once(ctxt, &mut parsed.with, &item, |ctxt, item| {
                    path(ctxt, item, "`with` is the path of a rule of your own: `with = \"money::Cents\"`")
                }),
                _ => {
                    unknown(ctxt, &item.word, item.span, Place::Field);
                }
            }
        }
        parsed.is_broken = ctxt.count() > errors;
        parsed
    }
}

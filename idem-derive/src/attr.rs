//! Parses `#[idem(…)]`, keeping the span of every word.

mod word;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Meta, Token, UnOp, token};

use self::word::{Place, nearest, unknown};
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
    pub(crate) allow_empty: Option<Given<()>>,
    pub(crate) rename_all: Option<Given<Case>>,
    pub(crate) krate: Option<Given<TokenStream>>,
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
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "operation" => once(ctxt, &mut parsed.operation, &item, string),
                "version" => once(ctxt, &mut parsed.version, &item, version),
                "allow_empty" => once(ctxt, &mut parsed.allow_empty, &item, flag),
                "rename_all" => once(ctxt, &mut parsed.rename_all, &item, case),
                "crate" => once(ctxt, &mut parsed.krate, &item, path),
                _ => unknown(ctxt, &item.word, item.span, Place::Type),
            }
        }
        parsed
    }
}

impl VariantAttrs {
    pub(crate) fn parse(ctxt: &Ctxt, attrs: &[Attribute]) -> Self {
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "rename" => once(ctxt, &mut parsed.rename, &item, string),
                _ => unknown(ctxt, &item.word, item.span, Place::Variant),
            }
        }
        parsed
    }
}

impl FieldAttrs {
    pub(crate) fn parse(ctxt: &Ctxt, attrs: &[Attribute]) -> Self {
        let mut parsed = Self::default();
        for item in items(ctxt, attrs) {
            match item.word.as_str() {
                "exclude" => once(ctxt, &mut parsed.exclude, &item, flag),
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
                _ => unknown(ctxt, &item.word, item.span, Place::Field),
            }
        }
        parsed
    }
}

/// One word of `#[idem(word, word = value, word(items))]`.
struct Item {
    word: String,
    span: Span,
    value: Value,
}

enum Value {
    None,
    Expr(Box<Expr>),
    EmptyList(Span),
    List(TokenStream),
    /// Reported already.
    Broken,
}

/// The words of every `#[idem(…)]` in order. What cannot be read is reported and skipped up to the next comma.
fn items(ctxt: &Ctxt, attrs: &[Attribute]) -> Vec<Item> {
    let mut items = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("idem")) {
        match &attr.meta {
            Meta::List(list) => items.extend(list_items(ctxt, list.tokens.clone(), list.path.span())),
            meta => {
                ctxt.error(meta.span(), "an idem attribute says what it is in brackets, such as `#[idem(exclude)]`")
            }
        }
    }
    items
}

fn list_items(ctxt: &Ctxt, tokens: TokenStream, span: Span) -> Vec<Item> {
    if tokens.is_empty() {
        ctxt.error(span, "nothing is said here; write for instance `#[idem(exclude)]`, or take the attribute out");
    }
    let mut items = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Some(item) = item(ctxt, input) {
                items.push(item);
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                ctxt.error(input.span(), "expected `,` before this");
                skip_to_comma(input);
            }
            let _: Option<Token![,]> = input.parse()?;
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        ctxt.syn(error);
    }
    items
}

fn item(ctxt: &Ctxt, input: ParseStream<'_>) -> Option<Item> {
    let Ok(ident) = input.call(Ident::parse_any) else {
        ctxt.error(input.span(), "expected the name of an attribute, such as `exclude`");
        skip_to_comma(input);
        return None;
    };
    let value = if let Ok(Some(eq)) = input.parse::<Option<Token![=]>>() {
        if input.is_empty() || input.peek(Token![,]) {
            ctxt.error(eq.span(), format!("`{ident} =` needs a value"));
            Value::Broken
        } else {
            equals(input).unwrap_or_else(|error| {
                ctxt.syn(error);
                skip_to_comma(input);
                Value::Broken
            })
        }
    } else if input.peek(token::Paren) {
        match input.parse() {
            Ok(TokenTree::Group(group)) => Value::List(group.stream()),
            _ => Value::Broken,
        }
    } else {
        Value::None
    };
    Some(Item { word: ident.to_string(), span: ident.span(), value })
}

fn equals(input: ParseStream<'_>) -> syn::Result<Value> {
    if input.peek(token::Bracket) {
        let group: TokenTree = input.parse()?;
        return match group {
            TokenTree::Group(list) if list.stream().is_empty() => Ok(Value::EmptyList(list.span())),
            list => Err(syn::Error::new(list.span(), "a list can only be the empty one here: `default = []`")),
        };
    }
    Ok(Value::Expr(Box::new(peel(input.parse()?))))
}

/// Takes off brackets and the invisible groups that `macro_rules!` puts around what it passes on.
fn peel(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => peel(*group.expr),
        Expr::Paren(paren) => peel(*paren.expr),
        expr => expr,
    }
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        let _ = input.parse::<TokenTree>();
    }
}

fn once<T>(ctxt: &Ctxt, slot: &mut Option<Given<T>>, item: &Item, read: fn(&Ctxt, &Item) -> Option<T>) {
    let value = read(ctxt, item);
    if slot.is_some() {
        ctxt.error(item.span, format!("`{}` is given twice; which one counts would be a guess", item.word));
    } else {
        *slot = Some(Given { span: item.span, value });
    }
}

fn flag(ctxt: &Ctxt, item: &Item) -> Option<()> {
    match item.value {
        Value::None => return Some(()),
        Value::Broken => {}
        _ => ctxt.error(item.span, format!("`{0}` takes no value; write `{0}` alone", item.word)),
    }
    None
}

fn string(ctxt: &Ctxt, item: &Item) -> Option<String> {
    literal_string(ctxt, item).map(|literal| literal.value())
}

fn literal_string(ctxt: &Ctxt, item: &Item) -> Option<LitStr> {
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

fn version(ctxt: &Ctxt, item: &Item) -> Option<u32> {
    whole_number(ctxt, item, 1..=i32::MAX as u32, "a version is a whole number from 1: `version = 1`")
}

fn whole_number(ctxt: &Ctxt, item: &Item, range: std::ops::RangeInclusive<u32>, rule: &str) -> Option<u32> {
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

fn case(ctxt: &Ctxt, item: &Item) -> Option<Case> {
    let literal = literal_string(ctxt, item)?;
    let case = Case::named(&literal.value());
    if case.is_none() {
        let nearest = nearest(&literal.value(), Case::NAMES);
        let hint = nearest.map_or_else(|| Case::NAMES.join("`, `"), str::to_owned);
        ctxt.error(literal.span(), format!("not a case that idem knows; did you mean `{hint}`?"));
    }
    case
}

fn path(ctxt: &Ctxt, item: &Item) -> Option<TokenStream> {
    match &item.value {
        Value::Expr(expr) => match &**expr {
            Expr::Path(path) => return Some(path.to_token_stream()),
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => match literal.parse::<syn::Path>() {
                Ok(path) => return Some(path.to_token_stream()),
                Err(_) => ctxt.error(literal.span(), "not a path; write for instance `crate = my_sdk::idem`"),
            },
            other => ctxt.error(other.span(), "`crate` is the path of idem-core: `crate = my_sdk::idem`"),
        },
        Value::Broken => {}
        _ => ctxt.error(item.span, "`crate` is the path of idem-core: `crate = my_sdk::idem`"),
    }
    None
}

fn default(ctxt: &Ctxt, item: &Item) -> Option<DefaultValue> {
    match &item.value {
        Value::EmptyList(span) => Some(DefaultValue::EmptyList(*span)),
        Value::Expr(expr) => Some(match &**expr {
            Expr::Lit(literal) => DefaultValue::Literal(literal.lit.clone()),
            expr => DefaultValue::Expr(Box::new(expr.clone())),
        }),
        Value::Broken => None,
        Value::None | Value::List(_) => {
            ctxt.error(item.span, "`default` needs the value that absence stands for: `default = \"web\"`");
            None
        }
    }
}

fn decimal(ctxt: &Ctxt, item: &Item) -> Option<Decimal> {
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
            _ => unknown(ctxt, &item.word, item.span, Place::Decimal),
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

fn timestamp(ctxt: &Ctxt, item: &Item) -> Option<&'static str> {
    const RULE: &str = "`timestamp` says what an instant is cut to: `timestamp(precision = \"ms\")`";
    let mut precision = None;
    for item in inner_items(ctxt, item, RULE)? {
        match item.word.as_str() {
            "precision" => once(ctxt, &mut precision, &item, |ctxt, item| {
                one_of(ctxt, item, &["s", "ms", "us"], "an instant is cut to `s`, `ms` or `us`; without, it is exact")
            }),
            _ => unknown(ctxt, &item.word, item.span, Place::Timestamp),
        }
    }
    precision?.value
}

/// The words in the brackets of an attribute that has to have some.
fn inner_items(ctxt: &Ctxt, item: &Item, rule: &str) -> Option<Vec<Item>> {
    match &item.value {
        Value::List(tokens) if !tokens.is_empty() => return Some(list_items(ctxt, tokens.clone(), item.span)),
        Value::Broken => {}
        _ => ctxt.error(item.span, rule),
    }
    None
}

fn one_of(ctxt: &Ctxt, item: &Item, known: &[&'static str], rule: &str) -> Option<&'static str> {
    let literal = literal_string(ctxt, item)?;
    let found = known.iter().find(|known| **known == literal.value()).copied();
    if found.is_none() {
        ctxt.error(literal.span(), rule);
    }
    found
}

/// A decimal literal, as sign, mantissa and scale.
pub(crate) fn decimal_literal(default: &DefaultValue) -> Option<(bool, u128, u32)> {
    let text = match default {
        DefaultValue::Literal(literal) => number_text(literal)?,
        DefaultValue::Expr(expr) => match &**expr {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match &*unary.expr {
                Expr::Lit(literal) => format!("-{}", number_text(&literal.lit)?),
                _ => return None,
            },
            _ => return None,
        },
        DefaultValue::EmptyList(_) => return None,
    };
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let is_number = !whole.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && fraction.len() <= 28;
    let mantissa = digits.parse().ok().filter(|mantissa| *mantissa < 1 << 96)?;
    is_number.then_some((negative, mantissa, fraction.len() as u32))
}

fn number_text(literal: &Lit) -> Option<String> {
    match literal {
        Lit::Str(text) => Some(text.value()),
        Lit::Int(number) if number.suffix().is_empty() => Some(number.base10_digits().into()),
        Lit::Float(number) if number.suffix().is_empty() => Some(number.base10_digits().into()),
        _ => None,
    }
}

/// Whether `#[serde(deny_unknown_fields)]` stands among the attributes.
pub(crate) fn denies_unknown_fields(attrs: &[Attribute]) -> bool {
    let serde = attrs.iter().filter(|attr| attr.path().is_ident("serde"));
    serde.filter_map(|attr| attr.meta.require_list().ok()).any(|list| {
        let mut words = list.tokens.clone().into_iter();
        words.any(|token| matches!(token, TokenTree::Ident(word) if word == "deny_unknown_fields"))
    })
}

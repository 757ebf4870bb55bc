//! Splits `#[idem(…)]` into its words, whatever they say.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Ident, Meta, Token, Type, token};

use crate::ctxt::Ctxt;

/// One word of `#[idem(word, word = value, word(items))]`.
pub(super) struct Item {
    pub(super) word: String,
    pub(super) span: Span,
    pub(super) value: Value,
}

pub(super) enum Value {
    None,
    Expr(Box<Expr>),
    Type(Box<Type>),
    EmptyList(Span),
    List(TokenStream),
    /// Reported already.
    Broken,
}

/// The words of every `#[idem(…)]` in order. What cannot be read is reported and skipped up to the next comma.
pub(super) fn items(ctxt: &Ctxt, attrs: &[Attribute]) -> Vec<Item> {
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

pub(super) fn list_items(ctxt: &Ctxt, tokens: TokenStream, span: Span) -> Vec<Item> {
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
            let start = input.span();
            equals(ctxt, &ident, input).unwrap_or_else(|error| {
                // What is cut off at the end is reported there by syn, which is nowhere: after the last token.
                if input.is_empty() || input.peek(Token![,]) {
                    ctxt.error(start, format!("the value of `{ident}` is cut off"));
                } else {
                    ctxt.syn(error);
                }
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

fn equals(ctxt: &Ctxt, word: &Ident, input: ParseStream<'_>) -> syn::Result<Value> {
    if word == "previous" && !input.peek(syn::Lit) {
        return input.parse().map(Box::new).map(Value::Type);
    }
    if input.peek(token::Bracket) {
        return Ok(match input.parse()? {
            TokenTree::Group(list) if list.stream().is_empty() => Value::EmptyList(list.span()),
            list => {
                ctxt.error(list.span(), "a list can only be the empty one here: `default = []`");
                Value::Broken
            }
        });
    }
    Ok(Value::Expr(Box::new(peeled(&input.parse()?).clone())))
}

/// Takes off brackets and the invisible groups that `macro_rules!` puts around what it passes on.
pub(super) fn peeled(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => peeled(&group.expr),
        Expr::Paren(paren) => peeled(&paren.expr),
        expr => expr,
    }
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        let _ = input.parse::<TokenTree>();
    }
}

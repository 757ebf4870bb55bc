//! What stands after `default =`.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

use super::generated;
use crate::attr::{DefaultValue, decimal_literal};
use crate::model::Field;

/// The value that absence stands for.
pub(super) fn default(field: &Field<'_>) -> Option<TokenStream> {
    let default = field.attrs.default.as_ref()?.value.as_ref()?;
    if field.attrs.decimal.is_some() {
        let (negative, mantissa, scale) = decimal_literal(default)?;
        let mantissa = Literal::u128_unsuffixed(mantissa);
        let scale = Literal::u32_unsuffixed(scale);
        return Some(quote! {
            _idem::DecimalLiteral { negative: #negative, mantissa: #mantissa, scale: #scale }
        });
    }
    Some(match default {
        DefaultValue::EmptyList(span) => quote_spanned!(generated(*span)=> _idem::empty_list),
        DefaultValue::Literal(number @ (Lit::Int(_) | Lit::Float(_))) => quote!(_idem::numeric(#number)),
        DefaultValue::Literal(literal) => literal.to_token_stream(),
        DefaultValue::Expr(number) if is_number(number) => quote!(_idem::numeric(#number)),
        DefaultValue::Expr(expr) => expr.to_token_stream(),
    })
}

/// The type of what stands after `default =`, where it can be seen: a field that does not take it says so by the words of
/// the attribute. Of others the compiler says what the field takes.
pub(super) fn default_type(field: &Field<'_>) -> TokenStream {
    match field.attrs.default.as_ref().and_then(|given| given.value.as_ref()) {
        _ if field.attrs.decimal.is_some() => quote!(_idem::DecimalLiteral),
        Some(DefaultValue::EmptyList(_)) => quote!(_idem::empty_list),
        Some(DefaultValue::Literal(Lit::Str(_))) => quote!(&_idem::str),
        Some(DefaultValue::Literal(Lit::Bool(_))) => quote!(_idem::bool),
        Some(DefaultValue::Literal(Lit::Char(_))) => quote!(_idem::char),
        Some(DefaultValue::Literal(Lit::Int(_) | Lit::Float(_))) => quote!(_idem::numeric<_>),
        Some(DefaultValue::Expr(number)) if is_number(number) => quote!(_idem::numeric<_>),
        _ => quote!(_),
    }
}

/// Whether this is a number literal with a sign.
fn is_number(expr: &Expr) -> bool {
    let Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) = expr else { return false };
    matches!(&**expr, Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }))
}

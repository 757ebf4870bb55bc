//! Decimal defaults, read exactly when the macro expands.

use syn::{Expr, Lit, UnOp};

use super::DefaultValue;
use super::item::peeled;

/// A decimal literal, as sign, mantissa and scale.
pub(crate) fn decimal_literal(default: &DefaultValue) -> Option<(bool, u128, u32)> {
    let text = match default {
        DefaultValue::Literal(literal) => number_text(literal)?,
        DefaultValue::Expr(expr) => match &**expr {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match peeled(&unary.expr) {
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

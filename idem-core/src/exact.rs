//! Amounts from requests, exactly as they were sent.
//!
//! A JSON number with a fraction goes through a double before anyone sees it, and `12345678901234567.89` and `….90`
//! arrive as one. [`decimal`] takes strings and integers, and refuses such numbers with a reason the client can act on:
//!
//! ```
//! use rust_decimal::Decimal;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Price {
//!     #[serde(deserialize_with = "idem_core::exact::decimal")]
//!     amount: Decimal,
//!     #[serde(default, deserialize_with = "idem_core::exact::decimal")]
//!     tip: Option<Decimal>,
//! }
//!
//! let price: Price = serde_json::from_str(r#"{"amount": "10.50"}"#)?;
//! assert_eq!((price.amount.to_string(), price.tip), ("10.50".into(), None));
//! let price: Price = serde_json::from_str(r#"{"amount": 10, "tip": 1}"#)?;
//! assert_eq!((price.amount, price.tip), (Decimal::TEN, Some(Decimal::ONE)));
//!
//! let refused = serde_json::from_str::<Price>(r#"{"amount": 10.5}"#).err().unwrap();
//! assert!(refused.to_string().contains(r#"send a string such as "10.50""#));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::fmt;

use rust_decimal::Decimal;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

/// Reads an amount for `#[serde(deserialize_with = "idem_core::exact::decimal")]`, on `Decimal` and `Option<Decimal>`.
///
/// Text may have a sign, leading zeros, a point without digits behind it and an exponent: `"010"`, `"+10"`, `"10."`
/// and `"1e1"` are 10. It may not have blanks or separators (`"1_000"`, `"1,00"`), nor more than a `Decimal` holds:
/// nothing is ever rounded.
///
/// # Errors
///
/// Whatever is not such a text or an integer of at most 64 bits, with what to send instead.
pub fn decimal<'de, T: Exact, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::exactly(deserializer)
}

/// What [`decimal`] reads: `Decimal` and `Option<Decimal>`.
pub trait Exact: sealed::Sealed + Sized {
    #[doc(hidden)]
    fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl Exact for Decimal {
    fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Amount)
    }
}

impl Exact for Option<Decimal> {
    fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(OptionalAmount)
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for rust_decimal::Decimal {}
    impl Sealed for Option<rust_decimal::Decimal> {}
}

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error(r#"not an amount; send digits with a point, such as "10.50", without blanks or separators"#)]
    Syntax,
    #[error("more digits than an amount can hold exactly (28 places, 96 bits); it would have to be rounded")]
    TooPrecise,
    #[error("larger than an amount can be (79228162514264337593543950335)")]
    TooLarge,
}

const FRACTIONAL: &str =
    r#"an amount as a JSON number is exact only as a whole number of 64 bits; send a string such as "10.50""#;

struct Amount;

impl<'de> Visitor<'de> for Amount {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"an amount: a string such as "10.50" or a whole number"#)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Decimal, E> {
        read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Decimal, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Decimal, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Decimal, E> {
        Err(E::custom(FRACTIONAL))
    }

    /// With `serde_json/arbitrary_precision`, which any crate may switch on, each number comes as a map that holds its
    /// text. The answer has to be the one that it is without.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Decimal, A::Error> {
        const NUMBER: &str = "$serde_json::private::Number";
        match map.next_entry::<String, String>() {
            Ok(Some((key, text))) if key == NUMBER => match (text.parse::<u64>(), text.parse::<i64>()) {
                (Ok(number), _) => Ok(number.into()),
                (_, Ok(number)) if number != 0 => Ok(number.into()),
                _ => Err(A::Error::custom(FRACTIONAL)),
            },
            _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

struct OptionalAmount;

impl<'de> Visitor<'de> for OptionalAmount {
    type Value = Option<Decimal>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Amount.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Option<Decimal>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Decimal>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Decimal>, D::Error> {
        Decimal::exactly(deserializer).map(Some)
    }
}

/// Reads `[+-] digits [. digits] [e [+-] digits]`, at least one digit before the exponent.
fn read(text: &str) -> Result<Decimal, Refused> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, read_exponent(exponent)?),
        None => (text, 0),
    };
    let negative = number.starts_with('-');
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }

    // The value is `significant * 10^power`, with no zeros around the significant digits.
    let scale = fraction.len() as i64 - exponent;
    let trailing = all.len() - all.trim_end_matches('0').len();
    let significant = all.trim_matches('0');
    if significant.is_empty() {
        return Ok(Decimal::ZERO);
    }
    let power = trailing as i64 - scale;
    let needed = power.min(0).unsigned_abs();
    if significant.len() > MAX_DIGITS || needed > MAX_SCALE {
        return Err(if power >= 0 { Refused::TooLarge } else { Refused::TooPrecise });
    }
    let significant: i128 = significant.parse().map_err(|_| Refused::Syntax)?;

    // As many places as were sent, or fewer where they do not fit: zeros are no digits to lose.
    let sent = scale.clamp(needed as i64, MAX_SCALE as i64);
    let fitting = (needed as i64..=sent).rev().find_map(|scale| {
        let mantissa = 10i128.checked_pow(u32::try_from(power + scale).ok()?)?.checked_mul(significant)?;
        Decimal::try_from_i128_with_scale(if negative { -mantissa } else { mantissa }, scale as u32).ok()
    });
    fitting.ok_or(if power >= 0 { Refused::TooLarge } else { Refused::TooPrecise })
}

fn read_exponent(text: &str) -> Result<i64, Refused> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    // Beyond this, zero is the only amount left, and its exponent does not matter.
    let size: i64 = digits.parse::<u32>().unwrap_or(u32::MAX).into();
    Ok(if text.starts_with('-') { -size } else { size })
}

const MAX_DIGITS: usize = 29;
const MAX_SCALE: u64 = 28;

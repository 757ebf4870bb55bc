//! Integers and decimals: strings of exact digits.

mod short;

use std::borrow::Cow;
use std::num::NonZero;

use short::Short;

use super::default::{numbers, own_values};
use super::{Canonical, MapKey, Shape, Shapes, Sink};

macro_rules! integer {
    ($int:ty, $sign_and_magnitude:expr, { $($list:item)* }) => {
        impl Canonical for $int {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let (negative, magnitude) = $sign_and_magnitude(*self);
                match Short::integer(negative, magnitude) {
                    Some(text) => text.write(sink),
                    None => sink.put(Digits::integer(negative, magnitude).as_bytes()),
                }
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("integer")
            }

            $($list)*
        }

        impl MapKey for $int {
            fn class() -> Cow<'static, str> {
                "integer".into()
            }

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                let (negative, magnitude) = $sign_and_magnitude(*self);
                let mut text = Digits::new();
                text.prepend_integer(negative, magnitude);
                read(text.as_str())
            }
        }

        own_values!([] $int as super::none;);
    };
}

macro_rules! integers {
    ($($unsigned:ident $signed:ident),*) => {$(
        integer!($signed, |n: $signed| (n < 0, n.unsigned_abs() as u128), {});
        numbers!($unsigned as super::none; $signed as super::none;);
        integer!(NonZero<$unsigned>, |n: NonZero<$unsigned>| (false, n.get() as u128), {});
        integer!(NonZero<$signed>, |n: NonZero<$signed>| (n.get() < 0, n.get().unsigned_abs() as u128), {});
    )*};
}

integers!(u8 i8, u16 i16, u32 i32, u64 i64, u128 i128, usize isize);
integer!(u16, |n: u16| (false, n as u128), {});
integer!(u32, |n: u32| (false, n as u128), {});
integer!(u64, |n: u64| (false, n as u128), {});
integer!(u128, |n: u128| (false, n), {});
integer!(usize, |n: usize| (false, n as u128), {});
integer!(u8, |n: u8| (false, n as u128), {
    fn write_list<'a, S: Sink + ?Sized>(items: impl Iterator<Item = &'a Self>, sink: &mut S) {
        write_hex(items, sink);
    }

    fn list_shape(_: &mut Shapes) -> Shape {
        Shape::leaf("bytes")
    }
});

/// Writes a number as it stands in JSON: digits, no quotes.
pub(crate) fn write_bare<S: Sink + ?Sized>(number: u32, sink: &mut S) {
    let mut text = Digits::new();
    text.prepend_integer(false, number.into());
    sink.put(text.as_bytes());
}

/// Writes `mantissa / 10^scale` exactly: trailing zeros dropped, then padded to `places`.
///
/// Digit work on purpose. Rescaling rounds, and for large mantissas it cannot reach the places asked for.
#[inline]
pub(super) fn write_decimal<S: Sink + ?Sized>(negative: bool, mantissa: u128, scale: u32, places: u32, sink: &mut S) {
    match Short::amount(negative, mantissa, scale, places) {
        Some(text) => text.write(sink),
        None => sink.put(Digits::decimal(negative, mantissa, scale, places).as_bytes()),
    }
}

/// Lends what [`write_decimal`] writes, without the quotes.
pub(super) fn with_decimal<R>(
    negative: bool,
    mantissa: u128,
    scale: u32,
    places: u32,
    read: impl FnOnce(&str) -> R,
) -> R {
    read(Digits::decimal(negative, mantissa, scale, places).as_str().trim_matches('"'))
}

fn write_hex<'a, S: Sink + ?Sized>(bytes: impl Iterator<Item = &'a u8>, sink: &mut S) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut chunk = [0; 128];
    let mut len = 0;
    sink.put(b"\"");
    for byte in bytes {
        chunk[len] = DIGITS[usize::from(byte >> 4)];
        chunk[len + 1] = DIGITS[usize::from(byte & 15)];
        len += 2;
        if len == chunk.len() {
            sink.put(&chunk);
            len = 0;
        }
    }
    sink.put(&chunk[..len]);
    sink.put(b"\"");
}

/// A number's text on the stack, written from its end.
struct Digits {
    text: [u8; ROOM],
    at: usize,
}

impl Digits {
    fn new() -> Self {
        Self { text: [0; ROOM], at: ROOM }
    }

    /// A JSON string with an integer in it.
    #[inline]
    fn integer(negative: bool, magnitude: u128) -> Self {
        let mut text = Self::new();
        text.prepend(b'"');
        text.prepend_integer(negative, magnitude);
        text.prepend(b'"');
        text
    }

    /// A JSON string with a decimal in it.
    fn decimal(negative: bool, mut mantissa: u128, mut scale: u32, places: u32) -> Self {
        if scale <= places {
            // Nothing to drop, as with most amounts.
        } else if let Ok(mut small) = u64::try_from(mantissa) {
            while scale > places && small.is_multiple_of(10) {
                small /= 10;
                scale -= 1;
            }
            mantissa = small.into();
        } else {
            while scale > places && mantissa.is_multiple_of(10) {
                mantissa /= 10;
                scale -= 1;
            }
        }
        let negative = negative && mantissa != 0;
        let mut text = Self::new();
        text.prepend(b'"');
        if scale.max(places) > 0 {
            for _ in scale..places {
                text.prepend(b'0');
            }
            mantissa = text.prepend_last(scale, mantissa);
            text.prepend(b'.');
        }
        text.prepend_integer(negative, mantissa);
        text.prepend(b'"');
        text
    }

    #[inline]
    fn prepend(&mut self, byte: u8) {
        self.at -= 1;
        self.text[self.at % ROOM] = byte;
    }

    /// Writes the two digits of a number below 100.
    #[inline]
    fn prepend_pair(&mut self, number: u64) {
        self.at -= 2;
        let [tens, ones] = PAIRS[number as usize % 100];
        self.text[self.at % ROOM] = tens;
        self.text[(self.at + 1) % ROOM] = ones;
    }

    #[inline]
    fn prepend_integer(&mut self, negative: bool, mut magnitude: u128) {
        // 128-bit division is a slow call, and few numbers need it.
        while magnitude > u64::MAX.into() {
            self.prepend(b'0' + (magnitude % 10) as u8);
            magnitude /= 10;
        }
        let mut rest = magnitude as u64;
        while rest >= 100 {
            self.prepend_pair(rest % 100);
            rest /= 100;
        }
        if rest >= 10 {
            self.prepend_pair(rest);
        } else {
            self.prepend(b'0' + rest as u8);
        }
        if negative {
            self.prepend(b'-');
        }
    }

    /// Writes the last digits of a number, zeros included, and gives back the digits before them.
    #[inline]
    fn prepend_last(&mut self, mut count: u32, mut magnitude: u128) -> u128 {
        while count > 0 && magnitude > u64::MAX.into() {
            self.prepend(b'0' + (magnitude % 10) as u8);
            magnitude /= 10;
            count -= 1;
        }
        if count == 0 {
            return magnitude;
        }
        let mut rest = magnitude as u64;
        for _ in 0..count / 2 {
            self.prepend_pair(rest % 100);
            rest /= 100;
        }
        if count % 2 == 1 {
            self.prepend(b'0' + (rest % 10) as u8);
            rest /= 10;
        }
        rest.into()
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("digits, signs and quotes are ASCII")
    }
}

/// The digits of every number below 100: dividing by ten once more costs more than looking.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The longest: 29 digits, a point, 28 places, a sign and two quotes. A power of two, so that a place taken modulo it
/// needs no check.
const ROOM: usize = 64;

#[cfg(feature = "rust_decimal")]
mod rust_decimal {
    use std::borrow::Cow;
    use std::cmp::Ordering;

    use ::rust_decimal::Decimal;

    use super::{with_decimal, write_decimal};
    use crate::canonical::attribute::{half_even, half_up};
    use crate::canonical::default::{AcceptsDefault, DecimalLiteral, Single};
    use crate::canonical::{Canonical, MapKey, Shape, Shapes, Sink, decimal, none};

    fn magnitude(decimal: &Decimal) -> u128 {
        let parts = decimal.unpack();
        u128::from(parts.hi) << 64 | u128::from(parts.mid) << 32 | u128::from(parts.lo)
    }

    // From mantissa and scale, never through `Display`, which a feature of some other crate could change.
    impl Canonical<none> for Decimal {
        fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
            write_decimal(self.is_sign_negative(), magnitude(self), self.scale(), 0, sink);
        }

        fn shape(_: &mut Shapes) -> Shape {
            Shape::leaf("decimal")
        }
    }

    impl MapKey for Decimal {
        fn class() -> Cow<'static, str> {
            "decimal".into()
        }

        fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
            with_decimal(self.is_sign_negative(), magnitude(self), self.scale(), 0, read)
        }
    }

    impl<const SCALE: u32> Canonical<decimal<SCALE>> for Decimal {
        fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
            write_decimal(self.is_sign_negative(), magnitude(self), self.scale(), SCALE, sink);
        }

        fn shape(_: &mut Shapes) -> Shape {
            Shape::leaf("decimal").with_rule(format!("scale = {SCALE}"))
        }
    }

    /// How a decimal is rounded before it is written.
    trait Rounding {
        /// The rule in the contract's text.
        const RULE: &'static str;

        /// Whether the digits before the cut go up by one. `half` compares what is cut off with a half of the last place.
        fn goes_up(half: Ordering, is_odd: bool) -> bool;
    }

    impl Rounding for half_even {
        const RULE: &'static str = r#"round = "half_even""#;

        fn goes_up(half: Ordering, is_odd: bool) -> bool {
            half.is_gt() || half.is_eq() && is_odd
        }
    }

    impl Rounding for half_up {
        const RULE: &'static str = r#"round = "half_up""#;

        fn goes_up(half: Ordering, _: bool) -> bool {
            half.is_ge()
        }
    }

    macro_rules! rounded {
        ($($rounding:ty),*) => {$(
            impl<const SCALE: u32> Canonical<decimal<SCALE, $rounding>> for Decimal {
                fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                    let mantissa = round::<$rounding>(magnitude(self), self.scale(), SCALE);
                    write_decimal(self.is_sign_negative(), mantissa, self.scale().min(SCALE), SCALE, sink);
                }

                fn shape(_: &mut Shapes) -> Shape {
                    let shape = <Self as Canonical<decimal<SCALE>>>::shape(&mut Shapes::default());
                    shape.with_rule(<$rounding as Rounding>::RULE)
                }
            }

            impl<const SCALE: u32> AcceptsDefault<DecimalLiteral, decimal<SCALE, $rounding>> for Decimal {
                fn write_default<S: Sink + ?Sized>(default: &DecimalLiteral, sink: &mut S) {
                    let mantissa = round::<$rounding>(default.mantissa, default.scale, SCALE);
                    write_decimal(default.negative, mantissa, default.scale.min(SCALE), SCALE, sink);
                }
            }
        )*};
    }

    rounded!(half_even, half_up);

    /// The mantissa cut to `places`.
    fn round<R: Rounding>(mantissa: u128, scale: u32, places: u32) -> u128 {
        let Some(cut) = scale.checked_sub(places).filter(|cut| *cut > 0) else { return mantissa };
        let unit = 10u128.pow(cut);
        let kept = mantissa / unit;
        let half = (mantissa % unit).cmp(&(unit / 2));
        kept + u128::from(R::goes_up(half, kept % 2 == 1))
    }

    impl<const SCALE: u32> AcceptsDefault<DecimalLiteral, decimal<SCALE>> for Decimal {
        fn write_default<S: Sink + ?Sized>(default: &DecimalLiteral, sink: &mut S) {
            write_decimal(default.negative, default.mantissa, default.scale, SCALE, sink);
        }
    }

    impl<const SCALE: u32, R> Single<decimal<SCALE, R>> for Decimal {}
}

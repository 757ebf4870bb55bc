//! Numbers of a few digits.

use super::PAIRS;
use crate::canonical::Sink;

/// The text of a short number in a register: most counts, and most amounts of money.
pub(super) struct Short {
    /// The first character in the lowest byte.
    text: u128,
    len: usize,
}

impl Short {
    const QUOTE: Self = Self { text: b'"' as u128, len: 1 };

    /// A JSON string with an integer in it, unless it is long.
    #[inline]
    pub(super) fn integer(negative: bool, magnitude: u128) -> Option<Self> {
        const LONG: u128 = 10_u128.pow(12);
        (magnitude < LONG).then(|| Self::QUOTE.digits(magnitude as u64).sign(negative).byte(b'"'))
    }

    /// A JSON string with a decimal of two places in it, unless it is long.
    #[inline]
    pub(super) fn amount(negative: bool, mantissa: u128, scale: u32, places: u32) -> Option<Self> {
        let unit = match scale {
            2 => 1,
            1 => 10,
            0 => 100,
            _ => return None,
        };
        let mantissa = u32::try_from(mantissa).ok().filter(|_| places == 2)?;
        let cents = u64::from(mantissa) * unit;
        let text = Self::QUOTE.pair(cents % 100).byte(b'.').digits(cents / 100);
        Some(text.sign(negative && cents != 0).byte(b'"'))
    }

    // Each of these puts something before the text.
    #[inline]
    fn byte(self, byte: u8) -> Self {
        Self { text: self.text << 8 | u128::from(byte), len: self.len + 1 }
    }

    #[inline]
    fn pair(self, number: u64) -> Self {
        let pair = u16::from_le_bytes(PAIRS[number as usize % 100]);
        Self { text: self.text << 16 | u128::from(pair), len: self.len + 2 }
    }

    #[inline]
    fn digits(mut self, mut number: u64) -> Self {
        while number >= 100 {
            self = self.pair(number % 100);
            number /= 100;
        }
        if number >= 10 { self.pair(number) } else { self.byte(b'0' + number as u8) }
    }

    #[inline]
    fn sign(self, negative: bool) -> Self {
        if negative { self.byte(b'-') } else { self }
    }

    #[inline]
    pub(super) fn write<S: Sink + ?Sized>(self, sink: &mut S) {
        sink.put_short(self.text.to_le_bytes(), self.len);
    }
}

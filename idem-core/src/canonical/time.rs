//! Instants, dates and durations.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::attribute::{Precision, ms, s, timestamp, us};
use super::default::own_values;
use super::number::{with_decimal, write_decimal};
use super::{Canonical, MapKey, Shape, Shapes, Sink, none};

/// A moment on the time line: seconds since 1970 and nanoseconds within the second, a second of them more in a leap
/// second.
#[derive(Clone, Copy)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: u8,
    pub(super) day: u8,
}

/// A time of day. `nanos` reaches into a second second for a leap second.
#[derive(Clone, Copy)]
pub(super) struct Time {
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) nanos: u32,
}

impl Instant {
    /// Cuts off what is finer than the precision. The nanoseconds count forward, so this goes towards the past.
    fn cut<P: Precision>(self) -> Self {
        let leap = self.nanos / NANOS;
        let within = self.nanos % NANOS;
        Self { nanos: leap * NANOS + within - within % P::STEP, ..self }
    }

    /// Always nine digits, so that a later precision changes no text.
    fn text(self) -> Text {
        let of_day = self.seconds.rem_euclid(DAY) as u32;
        let time = Time {
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
            nanos: self.nanos,
        };
        let mut text = Text::new();
        text.date(Date::of_day(self.seconds.div_euclid(DAY)));
        text.push(b'T');
        text.time(time);
        text.push(b'Z');
        text
    }
}

impl Date {
    /// The day that is so many days after 1970-01-01. Years begin in March here, which puts the leap day last.
    fn of_day(day: i64) -> Self {
        let day = day + 719_468;
        let era = day.div_euclid(146_097);
        let of_era = day.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * month + 2) / 5 + 1) as u8;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: year + era * 400 + i64::from(month <= 2), month: month as u8, day }
    }
}

/// A text of at most a date of a far year, a time and a `Z`.
struct Text {
    text: [u8; 64],
    len: usize,
}

impl Text {
    fn new() -> Self {
        let mut text = Self { text: [0; 64], len: 0 };
        text.push(b'"');
        text
    }

    fn push(&mut self, byte: u8) {
        self.text[self.len] = byte;
        self.len += 1;
    }

    fn padded(&mut self, number: u64, digits: u32) {
        let digits = digits.max(number.checked_ilog10().map_or(1, |log| log + 1));
        for power in (0..digits).rev() {
            self.push(b'0' + (number / 10u64.pow(power) % 10) as u8);
        }
    }

    /// A year outside 0..9999 has a sign and at least six digits, as ISO 8601 has it.
    fn date(&mut self, date: Date) {
        let is_far = !(0..=9999).contains(&date.year);
        if is_far {
            self.push(if date.year < 0 { b'-' } else { b'+' });
        }
        self.padded(date.year.unsigned_abs(), if is_far { 6 } else { 4 });
        self.push(b'-');
        self.padded(date.month.into(), 2);
        self.push(b'-');
        self.padded(date.day.into(), 2);
    }

    /// A leap second is second 60. Nanoseconds of a second second elsewhere, which only chrono can say, keep the second
    /// and have a tenth digit: the second after it would be another time of the same text.
    fn time(&mut self, time: Time) {
        let leap = u32::from(time.second == 59 && time.nanos >= NANOS);
        self.padded(time.hour.into(), 2);
        self.push(b':');
        self.padded(time.minute.into(), 2);
        self.push(b':');
        self.padded((u32::from(time.second) + leap).into(), 2);
        self.push(b'.');
        self.padded((time.nanos - leap * NANOS).into(), 9);
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[1..self.len]).expect("digits, signs and colons are ASCII")
    }

    fn put_into<S: Sink + ?Sized>(mut self, sink: &mut S) {
        self.push(b'"');
        sink.put(&self.text[..self.len]);
    }
}

/// Implements the classes for a type that says how it is an instant.
macro_rules! instants {
    ($([$($generics:tt)*] $ty:ty => $instant:expr;)*) => {$(
        impl<$($generics)*> Canonical<none> for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let instant: fn(&Self) -> Instant = $instant;
                instant(self).text().put_into(sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("instant")
            }
        }

        impl<$($generics)*> MapKey for $ty {
            fn class() -> Cow<'static, str> {
                "instant".into()
            }

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                let instant: fn(&Self) -> Instant = $instant;
                read(instant(self).text().as_str())
            }
        }

        own_values!([$($generics)*] $ty as none;);
        instants!(@cut [$($generics)*] $ty => $instant; s);
        instants!(@cut [$($generics)*] $ty => $instant; ms);
        instants!(@cut [$($generics)*] $ty => $instant; us);
    )*};
    (@cut [$($generics:tt)*] $ty:ty => $instant:expr; $precision:ty) => {
        impl<$($generics)*> Canonical<timestamp<$precision>> for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let instant: fn(&Self) -> Instant = $instant;
                instant(self).cut::<$precision>().text().put_into(sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("instant").with_rule(<$precision as Precision>::RULE)
            }
        }

        own_values!([$($generics)*] $ty as timestamp<$precision>;);
    };
}

instants! {
    [] SystemTime => |time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Instant { seconds: after.as_secs() as i64, nanos: after.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            let borrowed = i64::from(before.subsec_nanos() > 0);
            let nanos = (NANOS - before.subsec_nanos()) % NANOS;
            Instant { seconds: (before.as_secs() as i64).wrapping_neg() - borrowed, nanos }
        }
    };
}

/// Decimal seconds.
macro_rules! durations {
    ($($ty:ty => $nanos:expr;)*) => {$(
        impl Canonical for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let nanos: fn(&Self) -> (bool, u128) = $nanos;
                let (negative, nanos) = nanos(self);
                write_decimal(negative, nanos, 9, 0, sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("duration")
            }
        }

        impl MapKey for $ty {
            fn class() -> Cow<'static, str> {
                "duration".into()
            }

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                let nanos: fn(&Self) -> (bool, u128) = $nanos;
                let (negative, nanos) = nanos(self);
                with_decimal(negative, nanos, 9, 0, read)
            }
        }

        own_values!([] $ty as none;);
    )*};
}

#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
mod foreign; // here because its code uses the macros above

durations! {
    Duration => |duration| (false, duration.as_nanos());
}

const NANOS: u32 = 1_000_000_000;
const DAY: i64 = 86_400;

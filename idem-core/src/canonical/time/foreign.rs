//! The types of chrono, time and jiff, each behind the feature of its name.

macro_rules! civil {
    ($($ty:ty as $class:literal => |$value:ident, $text:ident| $write:block)*) => {$(
        impl Canonical for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let $value = self;
                let mut $text = Text::new();
                $write
                $text.put_into(sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf($class)
            }
        }

        impl MapKey for $ty {
            fn class() -> Cow<'static, str> {
                $class.into()
            }

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                let $value = self;
                let mut $text = Text::new();
                $write
                read($text.as_str())
            }
        }

        own_values!([] $ty as none;);
    )*};
}

/// The sign of so many nanoseconds, and how many.
fn signed(nanos: i128) -> (bool, u128) {
    (nanos < 0, nanos.unsigned_abs())
}

#[cfg(feature = "chrono")]
mod chrono {
    use ::chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike};

    use super::super::*;
    use super::signed;

    instants! {
        [Tz: TimeZone] DateTime<Tz> => |time| Instant {
            seconds: time.timestamp(),
            nanos: time.timestamp_subsec_nanos(),
        };
    }

    civil! {
        NaiveDate as "date" => |date, text| { text.date(parts(*date)); }
        NaiveTime as "time" => |time, text| { text.time(clock(*time)); }
        NaiveDateTime as "date-time" => |both, text| {
            text.date(parts(both.date()));
            text.push(b'T');
            text.time(clock(both.time()));
        }
    }

    durations! {
        TimeDelta => |delta| {
            signed(i128::from(delta.num_seconds()) * i128::from(NANOS) + i128::from(delta.subsec_nanos()))
        };
    }

    fn parts(date: NaiveDate) -> Date {
        Date { year: date.year().into(), month: date.month() as u8, day: date.day() as u8 }
    }

    fn clock(time: NaiveTime) -> Time {
        Time {
            hour: time.hour() as u8,
            minute: time.minute() as u8,
            second: time.second() as u8,
            nanos: time.nanosecond(),
        }
    }
}

#[cfg(feature = "time")]
mod time {
    use ::time::{OffsetDateTime, PrimitiveDateTime, UtcDateTime};

    use super::super::*;
    use super::signed;

    instants! {
        [] OffsetDateTime => |time| Instant { seconds: time.unix_timestamp(), nanos: time.nanosecond() };
        [] UtcDateTime => |time| Instant { seconds: time.unix_timestamp(), nanos: time.nanosecond() };
    }

    civil! {
        ::time::Date as "date" => |date, text| { text.date(parts(*date)); }
        ::time::Time as "time" => |time, text| { text.time(clock(*time)); }
        PrimitiveDateTime as "date-time" => |both, text| {
            text.date(parts(both.date()));
            text.push(b'T');
            text.time(clock(both.time()));
        }
    }

    durations! {
        ::time::Duration => |duration| signed(duration.whole_nanoseconds());
    }

    fn parts(date: ::time::Date) -> Date {
        Date { year: date.year().into(), month: date.month().into(), day: date.day() }
    }

    fn clock(time: ::time::Time) -> Time {
        let (hour, minute, second, nanos) = time.as_hms_nano();
        Time { hour, minute, second, nanos }
    }
}

#[cfg(feature = "jiff")]
mod jiff {
    use ::jiff::{SignedDuration, Timestamp, Zoned, civil};

    use super::super::*;
    use super::signed;

    instants! {
        [] Timestamp => |time| instant(*time);
        [] Zoned => |time| instant(time.timestamp());
    }

    civil! {
        civil::Date as "date" => |date, text| { text.date(parts(*date)); }
        civil::Time as "time" => |time, text| { text.time(clock(*time)); }
        civil::DateTime as "date-time" => |both, text| {
            text.date(parts(both.date()));
            text.push(b'T');
            text.time(clock(both.time()));
        }
    }

    durations! {
        SignedDuration => |duration| signed(duration.as_nanos());
    }

    /// jiff counts the part of a second before 1970 backwards.
    fn instant(time: Timestamp) -> Instant {
        let nanos = time.as_nanosecond();
        let second = i128::from(NANOS);
        Instant { seconds: nanos.div_euclid(second) as i64, nanos: nanos.rem_euclid(second) as u32 }
    }

    fn parts(date: civil::Date) -> Date {
        Date { year: date.year().into(), month: date.month().unsigned_abs(), day: date.day().unsigned_abs() }
    }

    fn clock(time: civil::Time) -> Time {
        Time {
            hour: time.hour().unsigned_abs(),
            minute: time.minute().unsigned_abs(),
            second: time.second().unsigned_abs(),
            nanos: time.subsec_nanosecond().unsigned_abs(),
        }
    }
}

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
    )*};
}

/// Durations with a sign, in nanoseconds.
macro_rules! signed_durations {
    ($($ty:ty => $nanos:expr;)*) => {$(
        impl Canonical for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let nanos: fn(&Self) -> i128 = $nanos;
                let nanos = nanos(self);
                write_decimal(nanos < 0, nanos.unsigned_abs(), 9, 0, sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("duration")
            }
        }
    )*};
}

#[cfg(feature = "chrono")]
mod chrono {
    use ::chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike};

    use super::super::*;

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

    signed_durations! {
        TimeDelta => |delta| i128::from(delta.num_seconds()) * i128::from(NANOS) + i128::from(delta.subsec_nanos());
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

    signed_durations! {
        ::time::Duration => |duration| duration.whole_nanoseconds();
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

    signed_durations! {
        SignedDuration => |duration| duration.as_nanos();
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

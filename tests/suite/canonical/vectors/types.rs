//! The vectors of classes that come from other crates, and of collections.

use std::collections::{BTreeSet, HashSet, VecDeque};

use serde_json::Value;

use crate::canonical::preimage;

pub(super) fn cases() -> Vec<(&'static str, Vec<String>)> {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::time::{Duration, SystemTime};

    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let chrono = |text: &str| text.parse::<chrono::DateTime<chrono::FixedOffset>>().unwrap();
    let half_past = 1_779_098_400_500_000_000;
    let time = |nanos| time::OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap();
    let jiff = |nanos| jiff::Timestamp::from_nanosecond(nanos).unwrap();
    let system = |after: bool, nanos| {
        let by = Duration::from_nanos(nanos);
        if after { SystemTime::UNIX_EPOCH + by } else { SystemTime::UNIX_EPOCH - by }
    };
    vec![
        (
            "flt-01",
            vec![preimage!(
                #[idem(float)]
                f64 = 0.1
            )],
        ),
        (
            "flt-02",
            vec![preimage!(
                #[idem(float)]
                f32 = 0.1
            )],
        ),
        (
            "flt-03",
            vec![
                preimage!(
                    #[idem(float)]
                    f64 = -0.0
                ),
                preimage!(#[idem(float)] Option<f32> = Some(-0.0)),
            ],
        ),
        (
            "flt-04",
            vec![preimage!(
                #[idem(float)]
                f64 = 1e21
            )],
        ),
        (
            "flt-05",
            vec![preimage!(
                #[idem(float)]
                f64 = 1_424_953_923_781_206.0 + 0.25
            )],
        ),
        (
            "flt-06",
            vec![
                preimage!(
                    #[idem(float)]
                    f64 = f64::NAN
                ),
                preimage!(
                    #[idem(float)]
                    f32 = -f32::NAN
                ),
            ],
        ),
        ("set-01", vec![preimage!(HashSet<u32> = [10, 9, 1].into()), preimage!(BTreeSet<u32> = [10, 9, 1].into())]),
        ("set-02", vec![preimage!(BTreeSet<String> = ["z", "\u{e9}", "a"].map(String::from).into())]),
        (
            "bag-01",
            vec![
                preimage!(#[idem(unordered)] Vec<u8> = vec![3, 1, 3]),
                preimage!(#[idem(unordered)] Option<VecDeque<u64>> = Some([1, 3, 3].into())),
            ],
        ),
        ("uid-01", vec![preimage!(uuid::Uuid = "8F14E45F-EA1B-4C2B-9F3A-2D7C1E0B5A91".parse().unwrap())]),
        (
            "tim-01",
            vec![
                preimage!(chrono::DateTime<chrono::FixedOffset> = chrono("2026-05-18T12:00:00.5+02:00")),
                preimage!(chrono::DateTime<chrono::Utc> = chrono("2026-05-18T10:00:00.500Z").to_utc()),
                preimage!(time::OffsetDateTime = time(half_past)),
                preimage!(time::UtcDateTime = time(half_past).to_utc()),
                preimage!(jiff::Timestamp = jiff(half_past)),
                preimage!(jiff::Zoned = jiff(half_past).to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)))),
                preimage!(SystemTime = system(true, half_past as u64)),
            ],
        ),
        (
            "tim-02",
            vec![
                preimage!(chrono::DateTime<chrono::FixedOffset> = chrono("1969-12-31T23:59:59.999999999Z")),
                preimage!(time::OffsetDateTime = time(-1)),
                preimage!(jiff::Timestamp = jiff(-1)),
                preimage!(SystemTime = system(false, 1)),
            ],
        ),
        ("tim-03", vec![preimage!(chrono::DateTime<chrono::FixedOffset> = chrono("2016-12-31T23:59:60.5Z"))]),
        (
            "tim-04",
            vec![
                preimage!(chrono::NaiveDate = "2026-02-28".parse().unwrap()),
                preimage!(time::Date = time::Date::from_ordinal_date(2026, 59).unwrap()),
                preimage!(jiff::civil::Date = jiff::civil::date(2026, 2, 28)),
            ],
        ),
        (
            "tim-05",
            vec![
                preimage!(chrono::NaiveDateTime = "2026-02-28T01:02:03.000004".parse().unwrap()),
                preimage!(
                    time::PrimitiveDateTime =
                        time::Date::from_ordinal_date(2026, 59).unwrap().with_hms_nano(1, 2, 3, 4000).unwrap()
                ),
                preimage!(jiff::civil::DateTime = jiff::civil::date(2026, 2, 28).at(1, 2, 3, 4000)),
            ],
        ),
        ("tim-06", vec![preimage!(chrono::NaiveDate = chrono::NaiveDate::from_ymd_opt(12345, 1, 1).unwrap())]),
        (
            "dur-01",
            vec![
                preimage!(Duration = Duration::from_millis(90_061_500)),
                preimage!(chrono::TimeDelta = chrono::TimeDelta::milliseconds(90_061_500)),
                preimage!(time::Duration = time::Duration::milliseconds(90_061_500)),
                preimage!(jiff::SignedDuration = jiff::SignedDuration::from_millis(90_061_500)),
            ],
        ),
        ("ip-01", vec![preimage!(IpAddr = Ipv4Addr::new(192, 0, 2, 1).into())]),
        ("ip-02", vec![preimage!(Ipv6Addr = "2001:db8::1".parse().unwrap())]),
        ("ip-03", vec![preimage!(IpAddr = "::ffff:1.2.3.4".parse().unwrap())]),
        ("val-01", vec![preimage!(Value = json(r#"{"b":[1,1.0,1.5,-0.0,1e21,"1",null,true],"a":{}}"#))]),
        ("val-02", vec![preimage!(Value = json("9007199254740993"))]),
        ("val-03", vec![preimage!(Value = json("9223372036854775808.0"))]),
    ]
}

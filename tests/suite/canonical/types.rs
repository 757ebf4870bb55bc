//! Sets, times, floats and JSON: values of other crates, by their value alone.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{assert_all_differ, canonical, preimage};

#[test]
fn sets_and_maps_have_no_order_and_lists_said_to_be_unordered_neither() {
    let set = |items: [&'static str; 3]| canonical!(HashSet<&'static str> = items.into());
    assert_eq!(set(["b", "a", "c"]), r#"["a","b","c"]"#);
    assert_eq!(canonical!(BTreeSet<i8> = [-1, 10, 9].into()), r#"["-1","10","9"]"#);
    let map = |items: [(&'static str, u8); 2]| canonical!(HashMap<&'static str, u8> = items.into());
    assert_eq!(map([("b", 1), ("a", 2)]), map([("a", 2), ("b", 1)]));
    let bag = |items: [&'static str; 3]| canonical!(#[idem(unordered, uppercase)] Vec<&'static str> = items.into());
    assert_eq!(bag(["b", "a", "B"]), r#"["A","B","B"]"#);
    assert_eq!(canonical!(#[idem(unordered, default = [])] Option<Vec<u8>> = Some(vec![])), "");
    assert_eq!(canonical!(VecDeque<u8> = [2, 1].into()), r#"["2","1"]"#);
}

#[test]
fn elements_of_a_set_that_are_one_after_normalisation_count_once() {
    let set: HashSet<&str> = ["e\u{301}", "\u{e9}", "eur", "EUR"].into();
    assert_eq!(canonical!(HashSet<&'static str> = set.clone()), "[\"EUR\",\"eur\",\"\u{e9}\"]");
    let set: HashSet<&str> = ["eur", "EUR"].into();
    assert_eq!(canonical!(#[idem(uppercase)] HashSet<&'static str> = set), r#"["EUR"]"#);
    let set: BTreeSet<&str> = ["eur", "EUR"].into();
    assert_eq!(canonical!(#[idem(uppercase)] BTreeSet<&'static str> = set), r#"["EUR"]"#);
}

#[test]
fn large_blobs_can_be_their_digest() {
    let empty = "\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";
    assert_eq!(canonical!(#[idem(digest)] Vec<u8> = vec![]), empty);
    assert_eq!(canonical!(#[idem(digest)] Option<Box<[u8]>> = Some(Box::new([]))), empty);
    assert_eq!(
        canonical!(
            #[idem(digest)]
            [u8; 0] = []
        ),
        empty
    );
    assert_eq!(canonical!(#[idem(digest, default = [])] Vec<u8> = vec![]), "");
}

#[test]
fn rounding_happens_only_where_it_is_asked_for() {
    let even = |text: &str| {
        canonical!(
            #[idem(decimal(scale = 2, round = "half_even"))]
            Decimal = text.parse().unwrap()
        )
    };
    let up = |text: &str| {
        canonical!(
            #[idem(decimal(scale = 2, round = "half_up"))]
            Decimal = text.parse().unwrap()
        )
    };
    for (text, to_even, away) in [
        ("1.005", "1.00", "1.01"),
        ("1.015", "1.02", "1.02"),
        ("-1.005", "-1.00", "-1.01"),
        ("1.0049999999", "1.00", "1.00"),
        ("1.0050000001", "1.01", "1.01"),
        ("-0.004", "0.00", "0.00"),
        ("9.999", "10.00", "10.00"),
        ("10", "10.00", "10.00"),
        ("79228162514264337593543950335", "79228162514264337593543950335.00", "79228162514264337593543950335.00"),
    ] {
        assert_eq!([even(text), up(text)], [to_even, away].map(|amount| format!("\"{amount}\"")), "{text}");
    }
    assert_eq!(
        canonical!(
            #[idem(decimal(scale = 0, round = "half_up"))]
            Decimal = Decimal::new(5, 1)
        ),
        r#""1""#
    );
}

#[test]
fn one_instant_has_one_text_whatever_its_zone_and_precision() {
    let instant = |text: &str| canonical!(chrono::DateTime<chrono::FixedOffset> = text.parse().unwrap());
    let same = [
        "2026-03-29T01:30:00Z",
        "2026-03-29T01:30:00+00:00",
        "2026-03-29T01:30:00-00:00",
        "2026-03-29T02:30:00+01:00",
        "2026-03-29T01:30:00.000Z",
    ];
    assert_eq!(same.map(instant), [0; 5].map(|_| r#""2026-03-29T01:30:00.000000000Z""#));
    assert_ne!(instant("2026-03-29T01:30:00.000000001Z"), instant(same[0]));
    let civil = canonical!(chrono::NaiveDateTime = "2026-03-29T01:30:00".parse().unwrap());
    assert_ne!(civil, instant(same[0]), "without a zone it is no instant");
}

#[test]
fn a_time_of_day_has_nine_digits_whoevers_type_it_is() {
    let text = r#""01:02:03.000004000""#;
    assert_eq!(canonical!(chrono::NaiveTime = chrono::NaiveTime::from_hms_micro_opt(1, 2, 3, 4).unwrap()), text);
    assert_eq!(canonical!(time::Time = time::Time::from_hms_micro(1, 2, 3, 4).unwrap()), text);
    assert_eq!(canonical!(jiff::civil::Time = jiff::civil::time(1, 2, 3, 4_000)), text);
    let leap = chrono::NaiveTime::from_hms_milli_opt(23, 59, 59, 1_500).unwrap();
    assert_eq!(canonical!(chrono::NaiveTime = leap), r#""23:59:60.500000000""#);
}

/// chrono takes so many nanoseconds in any second, and compares them as they are.
#[test]
fn nanoseconds_beyond_a_second_are_another_time_than_the_second_after() {
    use chrono::Timelike;

    let time = |second, nanos| {
        let time = chrono::NaiveTime::from_hms_opt(1, 2, second).unwrap().with_nanosecond(nanos).unwrap();
        let both = chrono::NaiveDate::from_ymd_opt(2016, 12, 31).unwrap().and_time(time);
        [
            canonical!(chrono::NaiveTime = time),
            canonical!(chrono::NaiveDateTime = both),
            canonical!(chrono::DateTime<chrono::Utc> = both.and_utc()),
        ]
    };
    assert_eq!(
        time(30, 1_500_000_000),
        [r#""01:02:30.1500000000""#, r#""2016-12-31T01:02:30.1500000000""#, r#""2016-12-31T01:02:30.1500000000Z""#]
    );
    assert_eq!(time(59, 1_500_000_000)[0], r#""01:02:60.500000000""#);
    let all = [time(30, 1_500_000_000), time(31, 500_000_000), time(30, 500_000_000), time(59, 1_500_000_000)].concat();
    assert_all_differ(&all);
}

#[test]
fn precision_cuts_towards_the_past() {
    macro_rules! cut {
        ($precision:literal, $nanos:expr) => {
            canonical!(
                #[idem(timestamp(precision = $precision))]
                jiff::Timestamp = jiff::Timestamp::from_nanosecond($nanos).unwrap()
            )
        };
    }
    assert_eq!(cut!("ms", 1_999_999), r#""1970-01-01T00:00:00.001000000Z""#);
    assert_eq!(cut!("s", 1_999_999_999), r#""1970-01-01T00:00:01.000000000Z""#);
    assert_eq!(cut!("us", -1), r#""1969-12-31T23:59:59.999999000Z""#);
    assert_eq!(cut!("s", -1), r#""1969-12-31T23:59:59.000000000Z""#);
    let leap: chrono::DateTime<chrono::Utc> = "2016-12-31T23:59:60.5Z".parse().unwrap();
    let second = canonical!(#[idem(timestamp(precision = "s"))] chrono::DateTime<chrono::Utc> = leap);
    assert_eq!(second, r#""2016-12-31T23:59:60.000000000Z""#);
}

#[test]
fn the_ends_of_time_have_texts() {
    use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

    assert_eq!(canonical!(DateTime<Utc> = DateTime::<Utc>::MIN_UTC), r#""-262143-01-01T00:00:00.000000000Z""#);
    assert_eq!(canonical!(DateTime<Utc> = DateTime::<Utc>::MAX_UTC), r#""+262142-12-31T23:59:59.999999999Z""#);
    assert_eq!(canonical!(NaiveDate = NaiveDate::from_ymd_opt(0, 2, 29).unwrap()), r#""0000-02-29""#);
    assert_eq!(canonical!(NaiveDate = NaiveDate::from_ymd_opt(-1, 1, 1).unwrap()), r#""-000001-01-01""#);
    assert_eq!(canonical!(Duration = Duration::MAX), r#""18446744073709551615.999999999""#);
    assert_eq!(canonical!(TimeDelta = TimeDelta::milliseconds(-1500)), r#""-1.5""#);
    assert_eq!(canonical!(time::Duration = time::Duration::MIN), r#""-9223372036854775808.999999999""#);
    assert_eq!(canonical!(jiff::SignedDuration = jiff::SignedDuration::ZERO), r#""0""#);
    for seconds in [i64::MAX as u64, 1 << 63] {
        if let Some(first) = SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(seconds)) {
            assert!(canonical!(SystemTime = first).starts_with("\"-292277022"));
        }
    }
}

#[test]
fn floats_differ_from_none_and_from_each_other() {
    let float = |number: f64| preimage!(#[idem(float)] Option<f64> = Some(number));
    let none = preimage!(#[idem(float)] Option<f64> = None);
    assert_eq!(float(-0.0), float(0.0));
    assert_all_differ(&[none, float(f64::NAN), float(f64::INFINITY), float(f64::NEG_INFINITY), float(0.0), float(1.0)]);
}

#[test]
fn json_values_keep_their_numbers_and_their_nulls() {
    let value = |value: Value| canonical!(Value = value);
    assert_eq!(
        value(json!({"b": 1, "a": [u64::MAX, i64::MIN, 1e300, 0.1]})),
        r#"{"a":[18446744073709551615,-9223372036854775808,1e+300,0.1],"b":1}"#
    );
    assert_eq!(value(json!(18446744073709551616.0)), "18446744073709552000");
    assert_eq!(value(json!(-18446744073709549568.0)), "-18446744073709549568");
    assert_all_differ(&[json!("1"), json!(1), json!([1]), json!(true), json!("true"), Value::Null].map(value));
    let members = |value: Option<Value>| preimage!(Option<Value> = value);
    assert_all_differ(&[None, Some(Value::Null), Some(json!([null]))].map(members));
    let list = canonical!(Vec<Option<Value>> = vec![None, Some(Value::Null), Some(json!(1))]);
    assert_eq!(list, "[null,[null],[1]]");
}

proptest! {
    #[test]
    fn instants_agree_across_crates(seconds in -377_705_023_201i64..253_402_207_200, nanos in 0..1_000_000_000u32) {
        let chrono = chrono::DateTime::<chrono::Utc>::from_timestamp(seconds, nanos).unwrap();
        let both = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let jiff = jiff::Timestamp::from_nanosecond(both).unwrap();
        let text = canonical!(chrono::DateTime<chrono::Utc> = chrono);
        prop_assert_eq!(&canonical!(jiff::Timestamp = jiff), &text);
        if let Ok(time) = time::OffsetDateTime::from_unix_timestamp_nanos(both) {
            prop_assert_eq!(&canonical!(time::OffsetDateTime = time), &text);
        }
        let civil = chrono.naive_utc();
        prop_assert_eq!(canonical!(chrono::NaiveDateTime = civil), text.replace('Z', ""));
    }
}

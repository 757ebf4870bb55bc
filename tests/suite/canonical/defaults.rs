//! What absence can stand for.

use std::collections::{BTreeMap, HashMap};

use idem_core::Canonical;

use super::canonical;

#[test]
fn defaults_of_every_kind() {
    assert_eq!(canonical!(#[idem(default = 5)] Option<u8> = Some(5)), "");
    assert_eq!(canonical!(#[idem(default = -5)] Box<i64> = Box::new(-5)), "");
    assert_eq!(
        canonical!(
            #[idem(default = 5)]
            u64 = 50
        ),
        r#""50""#
    );
    assert_eq!(
        canonical!(
            #[idem(default = true)]
            bool = true
        ),
        ""
    );
    assert_eq!(
        canonical!(
            #[idem(default = true)]
            bool = false
        ),
        "false"
    );
    assert_eq!(
        canonical!(
            #[idem(default = 'x')]
            char = 'x'
        ),
        ""
    );
    assert_eq!(canonical!(#[idem(default = [])] Vec<String> = vec![]), "");
    assert_eq!(canonical!(#[idem(default = [])] Option<Vec<u8>> = Some(vec![])), "");
    assert_eq!(canonical!(#[idem(default = [])] Vec<u8> = vec![0]), r#""00""#);
    assert_eq!(canonical!(#[idem(default = [])] Box<[u16]> = [].into()), "");
    assert_eq!(canonical!(#[idem(default = [])] Box<[u16]> = [1].into()), r#"["1"]"#);
    assert_eq!(canonical!(#[idem(default = [])] std::borrow::Cow<'static, [u8]> = Vec::new().into()), "");
    assert_eq!(canonical!(#[idem(default = [])] Option<&'static [String]> = Some(&[])), "");
    assert_eq!(canonical!(#[idem(default = [], digest)] &'static [u8] = &[]), "");
    assert_eq!(canonical!(#[idem(default = [], unordered)] std::rc::Rc<[u16]> = [].into()), "");
    assert_eq!(canonical!(#[idem(default = [])] BTreeMap<String, u8> = [].into()), "");
    assert_eq!(canonical!(#[idem(default = [])] Option<HashMap<String, u8>> = Some([].into())), "");
    assert_eq!(canonical!(#[idem(default = [])] HashMap<u8, u8> = [(1, 2)].into()), r#"{"1":"2"}"#);
    assert_eq!(canonical!(#[idem(default = [], unordered)] BTreeMap<u8, Vec<u16>> = [].into()), "");
    const BOTH: [u16; 2] = [1, 2];
    assert_eq!(
        canonical!(
            #[idem(default = BOTH)]
            [u16; 2] = [1, 2]
        ),
        ""
    );
    assert_eq!(
        canonical!(
            #[idem(default = BOTH, unordered)]
            [u16; 2] = [2, 1]
        ),
        ""
    );
    assert_eq!(canonical!(#[idem(default = (1, "a"))] (u8, &'static str) = (1, "a")), "");
    assert_eq!(canonical!(#[idem(default = (1, "a"))] (u8, &'static str) = (1, "b")), r#"["1","b"]"#);
    let mut other = "x".repeat(200);
    assert_eq!(canonical!(#[idem(default = LONG)] &'static str = LONG), "");
    other.replace_range(150..151, "y");
    assert_eq!(
        canonical!(
            #[idem(default = LONG)]
            String = other.clone()
        ),
        format!("\"{other}\"")
    );
}

/// A value of the field's own type, as a path or a call.
#[test]
fn a_default_of_any_class_is_left_out_and_another_value_is_not() {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::time::{Duration, SystemTime};

    macro_rules! defaults {
        ($(($($rule:tt)*) $ty:ty, $default:expr, $other:expr;)*) => {$(
            let canonical = |value: Option<$ty>| canonical!(#[idem(default = $default, $($rule)*)] Option<$ty> = value);
            assert_eq!([canonical(None), canonical(Some($default))], ["", ""], "{}", stringify!($ty = $default));
            assert_ne!(canonical(Some($other)), "", "{}", stringify!($ty = $other));
            assert_eq!(canonical!(#[idem(default = $default, $($rule)*)] $ty = $default), "");
        )*};
    }
    defaults! {
        (float) f64, 1.5, 0.5;
        (float) f32, 0.1, 0.2;
        (float) f64, f64::NAN, f64::INFINITY;
        () uuid::Uuid, uuid::Uuid::nil(), uuid::Uuid::max();
        () IpAddr, IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST);
        () Ipv4Addr, Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED;
        () Ipv6Addr, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED;
        () Duration, Duration::from_secs(30), Duration::ZERO;
        () chrono::TimeDelta, chrono::TimeDelta::zero(), chrono::TimeDelta::MAX;
        () time::Duration, time::Duration::MINUTE, time::Duration::HOUR;
        () jiff::SignedDuration, jiff::SignedDuration::ZERO, jiff::SignedDuration::MIN;
        () SystemTime, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + Duration::from_nanos(1);
        (timestamp(precision = "s")) SystemTime, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        () chrono::DateTime<chrono::Utc>, chrono::DateTime::UNIX_EPOCH, chrono::DateTime::<chrono::Utc>::MAX_UTC;
        () time::OffsetDateTime, time::OffsetDateTime::UNIX_EPOCH, time::OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1);
        (timestamp(precision = "ms")) jiff::Timestamp, jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::MAX;
        () chrono::NaiveDate, chrono::NaiveDate::MIN, chrono::NaiveDate::MAX;
        () chrono::NaiveTime, chrono::NaiveTime::MIN, chrono::NaiveTime::from_hms_opt(1, 0, 0).unwrap();
        () chrono::NaiveDateTime, chrono::NaiveDateTime::MIN, chrono::NaiveDateTime::MAX;
        () time::Date, time::Date::MIN, time::Date::MAX;
        () time::Time, time::Time::MIDNIGHT, time::Time::MAX;
        () time::PrimitiveDateTime, time::PrimitiveDateTime::MIN, time::PrimitiveDateTime::MAX;
        () jiff::civil::Date, jiff::civil::date(2026, 1, 1), jiff::civil::date(2026, 1, 2);
        () jiff::civil::Time, jiff::civil::Time::midnight(), jiff::civil::Time::MAX;
        () jiff::civil::DateTime, jiff::civil::DateTime::MIN, jiff::civil::DateTime::MAX;
        () serde_json::Value, serde_json::Value::Null, serde_json::Value::from(1);
        (uppercase) char, 'x', 'y';
    }
    assert_eq!(
        canonical!(
            #[idem(timestamp(precision = "s"), default = SystemTime::UNIX_EPOCH)]
            SystemTime = SystemTime::UNIX_EPOCH + Duration::from_millis(999)
        ),
        ""
    );
}

const LONG: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

#[test]
fn a_default_can_be_a_value_of_the_users_own_type() {
    #[derive(Canonical)]
    enum Method {
        Cash,
        Card(String),
    }
    #[derive(Canonical)]
    struct Currency(String);

    assert_eq!(canonical!(#[idem(default = Method::Cash)] Option<Method> = Some(Method::Cash)), "");
    let card = canonical!(
        #[idem(default = Method::Cash)]
        Method = Method::Card("t".into())
    );
    assert_eq!(card, r#"{"Card":"t"}"#);
    assert_eq!(canonical!(#[idem(uppercase, default = "EUR")] Option<Currency> = Some(Currency("eur".into()))), "");
}

//! The writer against a second one that takes no short cut: it builds a JSON value, and an RFC 8785 library of another
//! author writes it.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use arbitrary::Arbitrary;
use chrono::DateTime;
use idem_core::{Canonical, IdempotentCommand};
use libfuzzer_sys::fuzz_target;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

#[derive(Arbitrary, Debug, IdempotentCommand)]
#[idem(operation = "fuzz", version = 7)]
struct Input<'a> {
    text: &'a str,
    #[idem(verbatim)]
    verbatim: &'a str,
    #[idem(trim, uppercase)]
    upper: &'a str,
    #[idem(lowercase, default = "web")]
    lower: Option<&'a str>,
    #[idem(decimal(scale = 2), default = "0.00")]
    amount: Amount,
    number: i128,
    nested: Option<Option<u64>>,
    bytes: &'a [u8],
    map: BTreeMap<&'a str, Option<i16>>,
    set: BTreeSet<&'a str>,
    #[idem(unordered)]
    bag: Vec<Kind<'a>>,
    list: Vec<Option<Box<Kind<'a>>>>,
    hashed: HashMap<&'a str, u8>,
    #[idem(digest)]
    blobs: Vec<&'a [u8]>,
    #[idem(decimal(scale = 2, round = "half_even"))]
    rounded: Amount,
    #[idem(float)]
    double: f64,
    #[idem(float)]
    single: f32,
    instant: Instant,
    #[idem(timestamp(precision = "ms"))]
    cut: Instant,
    json: Json,
}

#[derive(Canonical, Debug)]
struct Amount(Decimal);

#[derive(Canonical, Debug)]
struct Instant(SystemTime);

impl Instant {
    /// Seconds since 1970, and nanoseconds from there on.
    fn parts(&self) -> (i64, u32) {
        match self.0.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => (after.as_secs() as i64, after.subsec_nanos()),
            Err(before) => {
                let nanos = before.duration().as_nanos() as i128;
                ((-nanos).div_euclid(1_000_000_000) as i64, (-nanos).rem_euclid(1_000_000_000) as u32)
            }
        }
    }
}

impl<'a> Arbitrary<'a> for Instant {
    /// Of the years 0 to 9999, which have four digits.
    fn arbitrary(bytes: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let seconds: i64 = bytes.int_in_range(-62_167_219_200..=253_402_300_799)?;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let whole =
            if seconds < 0 { SystemTime::UNIX_EPOCH - whole } else { SystemTime::UNIX_EPOCH + whole };
        Ok(Self(whole + Duration::from_nanos(bytes.int_in_range(0..=999_999_999)?)))
    }
}

#[derive(Canonical, Debug)]
struct Json(Value);

impl<'a> Arbitrary<'a> for Json {
    fn arbitrary(bytes: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let value = match bytes.int_in_range(0..=6)? {
            0 => Value::Null,
            1 => bool::arbitrary(bytes)?.into(),
            2 => i32::arbitrary(bytes)?.into(),
            3 => f64::arbitrary(bytes)?.into(),
            4 => <&str>::arbitrary(bytes)?.into(),
            5 => Vec::<Self>::arbitrary(bytes)?.into_iter().map(|item| item.0).collect(),
            _ => Vec::<(String, Self)>::arbitrary(bytes)?.into_iter().map(|(key, item)| (key, item.0)).collect(),
        };
        Ok(Self(value))
    }
}

impl<'a> Arbitrary<'a> for Amount {
    fn arbitrary(bytes: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let (low, mid, high, negative) = <(u32, u32, u32, bool)>::arbitrary(bytes)?;
        Ok(Self(Decimal::from_parts(low, mid, high, negative, bytes.int_in_range(0..=28)?)))
    }
}

#[derive(Arbitrary, Canonical, Debug)]
enum Kind<'a> {
    Unit,
    Text(&'a str),
    Row(bool, char),
    Object { z: u8, a: Option<&'a str> },
}

/// NFC of the release that is linked; text that release and Unicode 16 could disagree on is not compared.
fn nfc(text: &str) -> Option<String> {
    // Assigned long ago, and nothing that came after.
    let is_old = |c: char| matches!(u32::from(c), 0..=0x36F | 0x1E00..=0x1EFF | 0x2000..=0x2027 | 0xAC00..=0xD7A3);
    text.chars().all(is_old).then(|| text.nfc().collect())
}

/// Where idem is to write digits that RFC 8785 does not, nothing is compared.
fn json_value(value: &Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => nfc(text)?.into(),
        Value::Array(items) => items.iter().map(json_value).collect::<Option<_>>()?,
        Value::Object(members) => {
            members.iter().map(|(key, item)| Some((key.clone(), json_value(item)?))).collect::<Option<_>>()?
        }
        Value::Number(number) if (2_f64.powi(53)..2_f64.powi(64)).contains(&number.as_f64()?.abs()) => return None,
        other => other.clone(),
    })
}

fn float(value: f64) -> Option<Value> {
    match value {
        _ if value.is_nan() => Some("NaN".into()),
        _ if value.is_infinite() => Some(if value < 0.0 { "-Infinity" } else { "Infinity" }.into()),
        _ => serde_json_canonicalizer::to_string(&value).ok().map(Value::from),
    }
}

fn instant((seconds, nanos): (i64, u32)) -> Option<Value> {
    let instant = DateTime::from_timestamp(seconds, nanos)?;
    Some(instant.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string().into())
}

fn decimal(amount: &Decimal) -> String {
    let mantissa = amount.mantissa().unsigned_abs().to_string();
    let scale = amount.scale() as usize;
    let digits = format!("{mantissa:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = format!("{:0<2}", fraction.trim_end_matches('0'));
    let is_zero = mantissa == "0";
    let sign = if amount.is_sign_negative() && !is_zero { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

fn kind(kind: &Kind<'_>) -> Option<Value> {
    Some(match kind {
        Kind::Unit => json!("Unit"),
        Kind::Text(text) => json!({"Text": nfc(text)?}),
        Kind::Row(flag, c) => json!({"Row": [flag, nfc(&c.to_string())?]}),
        Kind::Object { z, a: None } => json!({"Object": {"z": z.to_string()}}),
        Kind::Object { z, a: Some(a) } => json!({"Object": {"z": z.to_string(), "a": nfc(a)?}}),
    })
}

fn sorted(values: impl Iterator<Item = Option<Value>>, is_set: bool) -> Option<Vec<Value>> {
    let texts = values.map(|value| serde_json_canonicalizer::to_string(&value?).ok());
    let mut texts: Vec<String> = texts.collect::<Option<_>>()?;
    texts.sort();
    if is_set {
        texts.dedup();
    }
    texts.iter().map(|text| serde_json::from_str(text).ok()).collect()
}

fn reference(input: &Input<'_>) -> Option<String> {
    let mut members = Map::new();
    members.insert("text".into(), nfc(input.text)?.into());
    members.insert("verbatim".into(), input.verbatim.into());
    members.insert("upper".into(), nfc(&nfc(input.upper.trim_ascii())?.to_ascii_uppercase())?.into());
    if let Some(lower) = input.lower {
        let lower = nfc(&nfc(lower)?.to_ascii_lowercase())?;
        if lower != "web" {
            members.insert("lower".into(), lower.into());
        }
    }
    if !input.amount.0.is_zero() {
        members.insert("amount".into(), decimal(&input.amount.0).into());
    }
    members.insert("number".into(), input.number.to_string().into());
    if let Some(nested) = input.nested {
        members.insert("nested".into(), nested.map(|n| n.to_string()).into());
    }
    members.insert("bytes".into(), input.bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into());
    let map = input.map.iter().map(|(key, value)| ((*key).to_owned(), value.map(|n| n.to_string()).into()));
    members.insert("map".into(), Value::Object(map.collect()));
    members.insert("set".into(), sorted(input.set.iter().map(|text| nfc(text).map(Value::from)), true)?.into());
    members.insert("bag".into(), sorted(input.bag.iter().map(kind), false)?.into());
    let list = input.list.iter().map(|item| item.as_ref().map_or(Some(Value::Null), |item| kind(item)));
    members.insert("list".into(), list.collect::<Option<Vec<_>>>()?.into());
    let hashed = input.hashed.iter().map(|(key, value)| ((*key).to_owned(), value.to_string().into()));
    members.insert("hashed".into(), Value::Object(hashed.collect()));
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let blobs = input.blobs.iter().map(|blob| format!("sha256:{}", hex(&Sha256::digest(blob))).into());
    members.insert("blobs".into(), Value::Array(blobs.collect()));
    let rounded = input.rounded.0.round_dp_with_strategy(2, RoundingStrategy::MidpointNearestEven);
    members.insert("rounded".into(), decimal(&rounded).into());
    members.insert("double".into(), float(input.double)?);
    members.insert("single".into(), float(input.single.into())?);
    members.insert("instant".into(), instant(input.instant.parts())?);
    let (seconds, nanos) = input.cut.parts();
    members.insert("cut".into(), instant((seconds, nanos - nanos % 1_000_000))?);
    members.insert("json".into(), json_value(&input.json.0)?);
    serde_json_canonicalizer::to_string(&json!(["idem/1", "fuzz", 7, members])).ok()
}

fuzz_target!(|input: Input<'_>| {
    let preimage = input.preimage();
    let hash: [u8; 32] = Sha256::digest(&preimage).into();
    assert_eq!(input.command_hash().digest(), &hash, "the buffer before the hash");
    if let Some(expected) = reference(&input) {
        assert_eq!(preimage, expected);
    }
});

//! The writer against a second one that takes no short cut: it builds a JSON value, and an RFC 8785 library of another
//! author writes it.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Arbitrary;
use idem_core::{Canonical, IdempotentCommand};
use libfuzzer_sys::fuzz_target;
use rust_decimal::Decimal;
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
}

#[derive(Canonical, Debug)]
struct Amount(Decimal);

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

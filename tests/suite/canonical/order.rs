//! A large nested command, generated at random: described for the reference implementation, and normalised by hand.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Timelike, Utc};
use idem_core::{Canonical, IdempotentCommand};
use proptest::prelude::*;
use proptest::sample::select;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

#[derive(IdempotentCommand, Clone, Debug, PartialEq)]
#[idem(operation = "place_order", version = 3)]
pub(super) struct Order {
    pub(super) account: String,
    #[idem(trim, uppercase)]
    pub(super) currency: String,
    #[idem(verbatim)]
    token: String,
    #[idem(decimal(scale = 2))]
    pub(super) amount: Decimal,
    #[idem(decimal(scale = 2, round = "half_even"))]
    rounded: Decimal,
    #[idem(default = "caf\u{e9}")]
    pub(super) channel: Option<String>,
    #[idem(decimal(scale = 2), default = "0.00")]
    tip: Option<Decimal>,
    note: Option<Option<String>>,
    pub(super) items: Vec<Item>,
    pub(super) tags: HashSet<String>,
    #[idem(unordered)]
    pub(super) coupons: Vec<String>,
    pub(super) metadata: HashMap<String, Option<i64>>,
    method: Method,
    #[idem(default = [])]
    blob: Vec<u8>,
    #[idem(digest)]
    attachment: Vec<u8>,
    at: DateTime<Utc>,
    #[idem(timestamp(precision = "ms"))]
    seen: DateTime<Utc>,
    day: NaiveDate,
    hour: NaiveTime,
    wait: Duration,
    id: Uuid,
    address: IpAddr,
    pub(super) details: Value,
    #[idem(float)]
    ratio: f64,
    pair: (bool, Option<char>, i128),
    list: Vec<Option<Option<bool>>>,
    #[idem(exclude)]
    pub(super) trace: u32,
}

#[derive(Canonical, Clone, Debug, PartialEq)]
pub(super) struct Item {
    sku: String,
    quantity: u32,
    unit_price: Decimal,
    options: Option<Vec<Item>>,
}

#[derive(Canonical, Clone, Debug, PartialEq)]
#[idem(rename_all = "snake_case")]
enum Method {
    Cash,
    Card(String),
    Split(u8, u8),
    BankTransfer { iban: String, bic: Option<String> },
}

/// Some letters that compose, some that never do, some of a later Unicode, some that JSON escapes.
const LETTERS: &str = "aAe \"\\\u{0}\n!z\u{e9}\u{301}\u{316}\u{307}i\u{130}\u{131}\u{df}\u{212b}\u{c5}\u{30a}\u{1100}\
                       \u{1161}\u{ac00}\u{11a8}\u{fb33}\u{e000}\u{1f600}\u{378}\u{1acf}";
const LATER: [char; 2] = ['\u{378}', '\u{1acf}'];

fn text() -> impl Strategy<Value = String> + Clone {
    let letter = select(LETTERS.chars().collect::<Vec<_>>());
    prop_oneof![
        4 => prop::collection::vec(letter, 0..5).prop_map(String::from_iter),
        1 => select(vec!["cafe\u{301}", "caf\u{e9}", "eur", " EUR\n"]).prop_map(String::from),
    ]
}

fn decimal() -> impl Strategy<Value = Decimal> + Clone {
    let any = (-(1i128 << 96) + 1..1i128 << 96, 0..=28u32);
    prop_oneof![
        (-300..300i128, 0..4u32).prop_map(|(mantissa, scale)| Decimal::from_i128_with_scale(mantissa, scale)),
        any.prop_map(|(mantissa, scale)| Decimal::from_i128_with_scale(mantissa, scale)),
    ]
}

fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    let ends = select(vec![DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC]);
    let leap = (-100_000..100_000i64, 1_000_000_000..2_000_000_000u32);
    prop_oneof![
        8 => (-8_000_000_000_000..8_000_000_000_000i64, 0..1_000_000_000u32)
            .prop_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos).unwrap()),
        1 => leap.prop_map(|(minute, nanos)| DateTime::from_timestamp(minute * 60 + 59, nanos).unwrap()),
        1 => ends,
    ]
}

fn details() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5.0..5.0).prop_map(Value::from),
        any::<f64>().prop_map(|double| Value::from(if double.is_finite() { double } else { 0.5 })),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..3).prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

fn item() -> impl Strategy<Value = Item> {
    let leaf = (text(), 0..3u32, decimal());
    let leaf = leaf.prop_map(|(sku, quantity, unit_price)| Item { sku, quantity, unit_price, options: None });
    leaf.prop_recursive(2, 6, 2, |inner| {
        let options = prop::option::of(prop::collection::vec(inner.clone(), 0..2));
        (inner, options).prop_map(|(item, options)| Item { options, ..item })
    })
}

pub(super) fn orders() -> impl Strategy<Value = Order> {
    let texts = || prop::collection::vec(text(), 0..4);
    let method = prop_oneof![
        Just(Method::Cash),
        text().prop_map(Method::Card),
        (0..3u8, 0..3u8).prop_map(|(a, b)| Method::Split(a, b)),
        (text(), prop::option::of(text())).prop_map(|(iban, bic)| Method::BankTransfer { iban, bic }),
    ];
    let amounts = (decimal(), decimal(), prop::option::of(decimal()));
    let names = (text(), text(), text(), prop::option::of(text()), prop::option::of(prop::option::of(text())));
    let held = (
        prop::collection::vec(item(), 0..3),
        texts(),
        texts(),
        prop::collection::hash_map(text(), any::<Option<i64>>(), 0..4),
    );
    let bytes = || prop::collection::vec(any::<u8>(), 0..3);
    let times = (instant(), instant(), any::<u64>(), 0..1_000_000_000u32);
    let others = (any::<u128>(), any::<IpAddr>(), details(), any::<f64>(), any::<u32>());
    let pair = (any::<bool>(), prop::option::of(select(LETTERS.chars().collect::<Vec<_>>())), any::<i128>());
    let list = prop::collection::vec(any::<Option<Option<bool>>>(), 0..3);
    (names, amounts, held, method, (bytes(), bytes()), times, others, pair, list).prop_map(
        |(names, amounts, held, method, bytes, times, others, pair, list)| Order {
            account: names.0,
            currency: names.1,
            token: names.2,
            amount: amounts.0,
            rounded: amounts.1,
            channel: names.3,
            tip: amounts.2,
            note: names.4,
            items: held.0,
            tags: held.1.into_iter().collect(),
            coupons: held.2,
            metadata: held.3,
            method,
            blob: bytes.0,
            attachment: bytes.1,
            at: times.0,
            seen: times.1,
            day: times.0.date_naive(),
            hour: times.1.time(),
            wait: Duration::new(times.2, times.3),
            id: Uuid::from_u128(others.0),
            address: others.1,
            details: others.2,
            ratio: others.3,
            pair,
            list,
            trace: others.4,
        },
    )
}

impl Order {
    /// The command with one field of another, each in its turn.
    pub(super) fn with_each_field_of(&self, other: &Self) -> Vec<Self> {
        macro_rules! with {
            ($($field:ident)*) => {{
                // A field that the list forgets does not compile.
                let Self { $($field: _,)* } = self;
                vec![$(Self { $field: other.$field.clone(), ..self.clone() },)*]
            }};
        }
        with!(
            account currency token amount rounded channel tip note items tags coupons metadata method blob attachment at
            seen day hour wait id address details ratio pair list trace
        )
    }

    /// The command in the reference implementation's words.
    pub(super) fn described(&self) -> Value {
        let integer = |n: i128| json!(["integer", n.to_string()]);
        let decimal = |n: &Decimal| json!(["decimal", n.to_string(), 2]);
        let text = |text: &str| json!(["text", text]);
        let texts = |texts: &mut dyn Iterator<Item = &String>| texts.map(|t| text(t)).collect::<Value>();
        let some = |held: Option<Value>, nullable: bool| held.map_or(json!(["none"]), |v| json!(["some", v, nullable]));
        let instant = |at: &DateTime<Utc>, precision: Value| {
            json!(["instant", at.timestamp(), at.timestamp_subsec_nanos(), precision])
        };
        let civil = [i64::from(self.day.year()), self.day.month().into(), self.day.day().into()];
        // A leap second is second 60 there, and a second of more than 10^9 nanoseconds in chrono.
        let leap = self.hour.nanosecond() / 1_000_000_000;
        let nanos = self.hour.nanosecond() % 1_000_000_000;
        let clock = [self.hour.hour(), self.hour.minute(), self.hour.second() + leap, nanos];
        let metadata = self.metadata.iter();
        let metadata = metadata.map(|(key, value)| json!([key, some(value.map(|n| integer(n.into())), false)]));
        let list =
            self.list.iter().map(|outer| some(outer.map(|inner| some(inner.map(|b| json!(["bool", b])), false)), true));
        let ip = match self.address {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let members = json!({
            "account": text(&self.account),
            "currency": ["text", self.currency, ["trim", "uppercase"]],
            "token": ["text", self.token, ["verbatim"]],
            "amount": decimal(&self.amount),
            "rounded": ["decimal", self.rounded.to_string(), 2, "half_even"],
            "channel": ["or", self.channel.as_ref().map(|channel| text(channel)), text("caf\u{e9}")],
            "tip": ["or", self.tip.as_ref().map(decimal), ["decimal", "0", 2]],
            "note": some(self.note.as_ref().map(|note| some(note.as_ref().map(|note| text(note)), false)), true),
            "items": ["list", self.items.iter().map(Item::described).collect::<Value>()],
            "tags": ["set", texts(&mut self.tags.iter())],
            "coupons": ["unordered", texts(&mut self.coupons.iter())],
            "metadata": ["map", metadata.collect::<Value>()],
            "method": self.method.described(),
            "blob": ["or", ["bytes", hex(&self.blob)], ["bytes", ""]],
            "attachment": ["digest", hex(&self.attachment)],
            "at": instant(&self.at, Value::Null),
            "seen": instant(&self.seen, "ms".into()),
            "day": ["date", civil],
            "hour": ["time", clock],
            "wait": ["duration", self.wait.as_nanos().to_string()],
            "id": ["uuid", self.id.simple().to_string()],
            "address": ["ip", hex(&ip)],
            "details": ["json", self.details],
            "ratio": ["float", format!("{:016x}", self.ratio.to_bits())],
            "pair": ["list", [
                json!(["bool", self.pair.0]),
                some(self.pair.1.map(|c| text(&c.to_string())), false),
                integer(self.pair.2),
            ]],
            "list": ["list", list.collect::<Value>()],
        });
        let members = members.as_object().unwrap().iter().map(|(name, member)| json!([name, member]));
        json!(["place_order", 3, ["object", members.collect::<Value>()]])
    }

    /// The same request said in the one plain way, found without idem.
    pub(super) fn normal(&self) -> Self {
        let cents = |n: &Decimal| Decimal::normalize(n);
        let sorted = |texts: &mut dyn Iterator<Item = &String>| {
            let mut texts: Vec<_> = texts.map(|text| nfc(text)).collect();
            texts.sort();
            texts
        };
        let upper = self.currency.trim_ascii().to_ascii_uppercase();
        let currency =
            if upper.contains(LATER) { upper } else { nfc(&nfc(self.currency.trim_ascii()).to_ascii_uppercase()) };
        let method = match &self.method {
            Method::Card(token) => Method::Card(nfc(token)),
            Method::BankTransfer { iban, bic } => {
                Method::BankTransfer { iban: nfc(iban), bic: bic.as_deref().map(nfc) }
            }
            other => other.clone(),
        };
        Self {
            account: nfc(&self.account),
            currency,
            amount: cents(&self.amount),
            rounded: cents(&self.rounded.round_dp_with_strategy(2, RoundingStrategy::MidpointNearestEven)),
            channel: self.channel.as_deref().map(nfc).filter(|channel| channel != "caf\u{e9}"),
            tip: self.tip.as_ref().map(cents).filter(|tip| !tip.is_zero()),
            note: self.note.as_ref().map(|note| note.as_deref().map(nfc)),
            items: self.items.iter().map(Item::normal).collect(),
            tags: self.tags.iter().map(|tag| nfc(tag)).collect::<BTreeSet<_>>().into_iter().collect(),
            coupons: sorted(&mut self.coupons.iter()),
            method,
            seen: DateTime::from_timestamp(
                self.seen.timestamp(),
                self.seen.timestamp_subsec_nanos() / 1_000_000 * 1_000_000,
            )
            .unwrap(),
            details: normal_json(&self.details),
            // One NaN, which unlike NaN equals itself.
            ratio: if self.ratio.is_nan() { 1e308 / 3.0 } else { self.ratio },
            trace: 0,
            ..self.clone()
        }
    }
}

impl Item {
    fn described(&self) -> Value {
        let options = self.options.as_ref().map(|items| items.iter().map(Self::described).collect::<Value>());
        json!([
            "object",
            [
                ["sku", ["text", self.sku]],
                ["quantity", ["integer", self.quantity.to_string()]],
                ["unit_price", ["decimal", self.unit_price.to_string(), 0, null]],
                ["options", options.map_or(Value::Null, |options| json!(["list", options]))],
            ]
        ])
    }

    fn normal(&self) -> Self {
        Self {
            sku: nfc(&self.sku),
            unit_price: self.unit_price.normalize(),
            options: self.options.as_ref().map(|items| items.iter().map(Self::normal).collect()),
            ..*self
        }
    }
}

impl Method {
    fn described(&self) -> Value {
        match self {
            Self::Cash => json!(["variant", "cash"]),
            Self::Card(token) => json!(["variant", "card", ["text", token]]),
            Self::Split(a, b) => {
                json!(["variant", "split", ["list", [["integer", a.to_string()], ["integer", b.to_string()]]]])
            }
            Self::BankTransfer { iban, bic } => json!([
                "variant",
                "bank_transfer",
                ["object", [["iban", ["text", iban]], ["bic", bic.as_ref().map(|bic| ["text", bic])]]]
            ]),
        }
    }
}

fn nfc(text: &str) -> String {
    if text.contains(LATER) { text.into() } else { text.nfc().collect() }
}

/// A number by its value: an integer however it came, a double otherwise.
fn normal_json(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let double = number.as_f64().unwrap();
            let as_integer = format!("{double:.0}");
            match (double.fract() == 0.0, as_integer.parse::<u64>(), as_integer.parse::<i128>()) {
                (true, Ok(integer), _) => integer.into(),
                (true, _, Ok(integer)) if integer > -(1 << 64) => json!(["a negative integer", integer.to_string()]),
                _ => value.clone(),
            }
        }
        Value::Number(number) if number.as_u64().is_none() => json!(["a negative integer", number.to_string()]),
        Value::String(text) => nfc(text).into(),
        Value::Array(items) => items.iter().map(normal_json).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), normal_json(item))).collect(),
        other => other.clone(),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! What holds for every value: one request, one text; no order that does not count; no text that JSON reads otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::process::Command;

use idem_core::{Canonical, IdempotentCommand};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::Value;

use super::order::orders;
use super::{canonical, preimage};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn two_commands_share_a_preimage_exactly_when_they_are_one_request(a in orders(), b in orders()) {
        let is_one = a.normal() == b.normal();
        prop_assert_eq!(a.preimage() == b.preimage(), is_one);
        prop_assert_eq!(a.command_hash() == b.command_hash(), is_one);
    }

    #[test]
    fn a_request_said_in_the_plain_way_is_the_same_one(order in orders()) {
        let mut plain = order.normal();
        plain.details = order.details.clone();
        // NaN is the one value that the plain form has to spell otherwise.
        if plain.normal() == order.normal() && !order.preimage().contains("NaN") {
            prop_assert_eq!(plain.preimage(), order.preimage());
        }
    }

    #[test]
    fn each_field_counts_alone(order in orders(), other in orders()) {
        for changed in order.with_each_field_of(&other) {
            let is_one = changed.normal() == order.normal();
            prop_assert_eq!(changed.preimage() == order.preimage(), is_one);
            prop_assert_eq!(changed.command_hash() == order.command_hash(), is_one);
        }
    }

    #[test]
    fn no_order_that_does_not_count_makes_another_command(order in orders()) {
        let mut shuffled = order.clone();
        shuffled.coupons.reverse();
        shuffled.tags = order.tags.iter().cloned().rev_by_hash();
        shuffled.metadata = order.metadata.iter().map(|(k, v)| (k.clone(), *v)).rev_by_hash();
        shuffled.details = reversed(&order.details);
        prop_assert_eq!(shuffled.command_hash(), order.command_hash());
    }

    #[test]
    fn maps_and_sets_of_any_hasher_and_the_sorted_ones_are_one(
        entries in prop::collection::vec(("[a-c\u{e9}\u{fb33}\u{1f600}]{0,2}", any::<Option<u8>>()), 0..20),
    ) {
        type Seeded = HashMap<String, Option<u8>, Reversed>;
        type SeededSet = HashSet<String, Reversed>;
        let sorted: BTreeMap<_, _> = entries.iter().cloned().collect();
        let random: HashMap<_, _> = entries.iter().cloned().collect();
        let seeded: Seeded = entries.iter().cloned().collect();
        let one = canonical!(BTreeMap<String, Option<u8>> = sorted);
        prop_assert_eq!(&canonical!(HashMap<String, Option<u8>> = random), &one);
        prop_assert_eq!(&canonical!(Seeded = seeded), &one);
        let names = || entries.iter().map(|(name, _)| name.clone());
        let one = canonical!(BTreeSet<String> = names().collect());
        prop_assert_eq!(&canonical!(HashSet<String> = names().collect()), &one);
        prop_assert_eq!(&canonical!(SeededSet = names().collect()), &one);
    }

    #[test]
    fn a_preimage_is_a_fixed_point_of_rfc_8785(mut order in orders()) {
        // But for integers from 2^53 on in a JSON value, which keep their exact digits.
        order.details = small(&order.details);
        let preimage = order.preimage();
        let value: Value = serde_json::from_str(&preimage).unwrap();
        prop_assert_eq!(serde_json_canonicalizer::to_string(&value).unwrap(), preimage);
    }

    #[test]
    fn decimals_never_fail(mantissa in -(1i128 << 96) + 1..1 << 96, scale in 0..=28u32) {
        let decimal = Decimal::from_i128_with_scale(mantissa, scale);
        for text in [
            canonical!(Decimal = decimal),
            canonical!(#[idem(decimal(scale = 28))] Decimal = decimal),
            canonical!(#[idem(decimal(scale = 0, round = "half_up"))] Decimal = decimal),
            canonical!(#[idem(decimal(scale = 28, round = "half_even"))] Decimal = decimal),
        ] {
            let digits = text.trim_matches(['"', '-']);
            prop_assert!(digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'), "{}", text);
            prop_assert!(!digits.starts_with('.') && !digits.ends_with('.'), "{}", text);
        }
        let exact: Decimal = canonical!(Decimal = decimal).trim_matches('"').parse().unwrap();
        prop_assert_eq!(exact, decimal);
    }
}

/// Iterates backwards by the hash, whatever the entries are.
#[derive(Clone, Default)]
struct Reversed;

struct Last(u64);

impl BuildHasher for Reversed {
    type Hasher = Last;

    fn build_hasher(&self) -> Last {
        Last(0)
    }
}

impl Hasher for Last {
    fn finish(&self) -> u64 {
        u64::MAX - self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    }
}

/// Collects in the opposite order.
trait RevByHash: Iterator + Sized {
    fn rev_by_hash<C: FromIterator<Self::Item>>(self) -> C {
        let items: Vec<_> = self.collect();
        items.into_iter().rev().collect()
    }
}

impl<I: Iterator> RevByHash for I {}

/// The same JSON from a text whose members come the other way round.
fn reversed(value: &Value) -> Value {
    fn text(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" , ")),
            Value::Object(members) => {
                let members = members.iter().rev();
                let members = members.map(|(name, item)| format!("{} : {}", Value::from(name.as_str()), text(item)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"))
            }
            other => other.to_string(),
        }
    }
    serde_json::from_str(&text(value)).unwrap()
}

/// The value with the integers made small that RFC 8785 would write otherwise.
fn small(value: &Value) -> Value {
    match value {
        Value::Number(number)
            if number
                .as_f64()
                .is_some_and(|n| n.fract() == 0.0 && ((1u64 << 53) as f64..=u64::MAX as f64).contains(&n.abs())) =>
        {
            7.into()
        }
        Value::Array(items) => items.iter().map(small).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), small(item))).collect(),
        other => other.clone(),
    }
}

/// Every character that Unicode 16 knows, between a letter and marks, many to a text with blanks between; each end of
/// every range that it does not know, alone, for one such character keeps a whole text as it is.
#[test]
fn normalising_twice_is_normalising_once_over_all_of_unicode() {
    let unassigned = super::reference::unassigned();
    let is_unassigned = |c: char| {
        let after = unassigned.partition_point(|(first, _)| *first <= u32::from(c));
        after > 0 && u32::from(c) <= unassigned[after - 1].1
    };
    let known: Vec<char> = ('\0'..=char::MAX).filter(|c| !is_unassigned(*c)).collect();
    assert_eq!(known.len(), 154_998 + 137_468 + 65, "the characters of Unicode 16, private use and controls");
    // Ideographs, syllables and private use are many and alike.
    let is_plain = |c: char| matches!(u32::from(c), 0x3400..=0x9FFF | 0xAC00..=0xD7A3 | 0xE000..=0xF8FF | 0x20000..);
    let frames = |c: char| match is_plain(c) {
        true => format!("{c}\u{301}\u{316} "),
        false => format!("{c} a{c}\u{301}\u{316} \u{1100}\u{316}{c}i\u{307} "),
    };
    for chunk in known.chunks(128) {
        assert_once(&chunk.iter().copied().map(frames).collect::<String>());
    }
    for c in unassigned.iter().flat_map(|(first, last)| [*first, *last]).filter_map(char::from_u32) {
        assert_once(&frames(c));
    }
}

/// Under every rule, what normalising gives it gives again.
fn assert_once(sent: &str) {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Text<'a> {
        plain: &'a str,
        #[idem(trim, uppercase)]
        upper: &'a str,
        #[idem(lowercase)]
        lower: &'a str,
        #[idem(trim)]
        trim: &'a str,
    }
    let once = Text { plain: sent, upper: sent, lower: sent, trim: sent }.preimage();
    let value: Value = serde_json::from_str(&once).unwrap();
    let [plain, upper, lower, trim] = ["plain", "upper", "lower", "trim"].map(|name| value[3][name].as_str().unwrap());
    assert_eq!(Text { plain, upper, lower, trim }.preimage(), once, "{sent:?}");
}

#[test]
fn the_ends_of_every_number_and_empty_everything_have_a_text() {
    macro_rules! ends {
        ($($int:ty),*) => {$(
            for n in [<$int>::MIN, <$int>::MAX, 0, 1] {
                assert_eq!(canonical!($int = n), format!("\"{n}\""));
            }
        )*};
    }
    ends!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize);
    assert_eq!(canonical!(String = String::new()), r#""""#);
    assert_eq!(canonical!(Vec<String> = vec![]), "[]");
    assert_eq!(canonical!(BTreeSet<String> = [].into()), "[]");
    assert_eq!(canonical!(HashMap<String, u8> = [].into()), "{}");
    assert_eq!(canonical!([u8; 0] = []), r#""""#);
    assert_eq!(canonical!([String; 0] = []), "[]");
    assert_eq!(canonical!(#[idem(unordered)] Vec<u8> = vec![]), "[]");
    assert_eq!(canonical!(Value = Value::Object(serde_json::Map::new())), "{}");
    for bits in [0, 1, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, u64::MAX, 0x7FEF_FFFF_FFFF_FFFF] {
        let float = canonical!(
            #[idem(float)]
            f64 = f64::from_bits(bits)
        );
        assert!(float.len() > 2, "{float}");
    }
}

const CHILD: &str = "IDEM_TEST_CHILD";

/// A command that holds all that could depend on the process: seeds, time zone, locale.
fn in_this_process() -> String {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Moody {
        map: HashMap<String, u8>,
        set: HashSet<u32>,
        json: Value,
        at: chrono::DateTime<chrono::FixedOffset>,
        local: std::time::SystemTime,
        #[idem(uppercase)]
        text: String,
    }
    let moody = Moody {
        map: (0..30).map(|n| (format!("key {n}"), n)).collect(),
        set: (0..100).collect(),
        json: serde_json::from_str(r#"{"b":{"z":1,"a":2},"a":[1.5,"i"]}"#).unwrap(),
        at: "2026-03-29T02:30:00+01:00".parse().unwrap(),
        local: std::time::UNIX_EPOCH,
        text: "istanbul \u{131}\u{df}".into(),
    };
    moody.command_hash().to_string()
}

#[test]
fn every_process_time_zone_and_locale_has_one_hash() {
    let hash = in_this_process();
    if std::env::var_os(CHILD).is_some() {
        println!("hash {hash} end");
        return;
    }
    let name = std::thread::current().name().unwrap().to_owned();
    let zones = ["UTC", "America/New_York", "Pacific/Kiritimati", "Asia/Kolkata"];
    let locales = ["C", "tr_TR.UTF-8", "de_DE.UTF-8", "ja_JP.UTF-8"];
    for process in 0..200 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(CHILD, "1")
            .env("TZ", zones[process % 4])
            .env("LC_ALL", locales[process / 4 % 4])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("hash {hash} end")), "{hash} is not in {said}");
    }
}

/// Text with marks of Unicode 17 and later, which newer tables would put in another order or compose.
#[test]
fn tables_newer_than_unicode_16_change_no_text() {
    for later in ["a\u{1acf}\u{316}", "a\u{1add}\u{316}e\u{301}", "\u{10efa}\u{316}e\u{301}", "e\u{301}\u{323c0}"] {
        assert_eq!(preimage!(String = later.into()), format!("[\"idem/1\",\"t\",1,{{\"v\":\"{later}\"}}]"));
        let upper = later.to_ascii_uppercase();
        assert_eq!(
            canonical!(
                #[idem(uppercase)]
                String = later.into()
            ),
            format!("\"{upper}\"")
        );
    }
}

#[derive(Canonical)]
struct Deep(Option<Box<Deep>>);

#[test]
fn deep_values_do_not_need_more_stack_than_their_depth() {
    let mut deep = Deep(None);
    for _ in 0..1000 {
        deep = Deep(Some(Box::new(deep)));
    }
    assert_eq!(canonical!(Deep = deep), format!("{}null{}", "[".repeat(999), "]".repeat(999)));
}

//! What a hash costs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use idem_core::IdempotentCommand;
use rust_decimal::Decimal;
use serde_json::{Value, json};

#[derive(idem_core::IdempotentCommand)]
#[idem(operation = "everything", version = 1)]
struct Everything {
    #[idem(trim, uppercase, default = "EUR")]
    currency: String,
    #[idem(decimal(scale = 2), default = "0.00")]
    amount: Decimal,
    note: Option<String>,
    numbers: Vec<u128>,
    bytes: Vec<u8>,
    pairs: Vec<(bool, Option<char>)>,
    metadata: BTreeMap<String, Option<i64>>,
    few: HashMap<String, bool>,
    tags: BTreeSet<String>,
    details: Value,
    #[idem(float)]
    ratio: f64,
    at: SystemTime,
    day: chrono::NaiveDate,
    id: uuid::Uuid,
    address: std::net::IpAddr,
    #[idem(default = Method::Cash)]
    method: Method,
}

#[derive(idem_core::Canonical)]
enum Method {
    Cash,
    Card { token: Box<str> },
}

fn allocations(of: impl FnOnce()) -> u64 {
    allocation_counter::measure(of).count_total
}

#[test]
fn hashing_allocates_nothing() {
    let everything = Everything {
        currency: " eur\u{e9}e\u{301} ".into(),
        amount: Decimal::MIN,
        note: Some("e\u{301}\n".repeat(500)),
        numbers: vec![u128::MAX; 50],
        bytes: vec![255; 1000],
        pairs: vec![(true, None), (false, Some('\u{e9}'))],
        metadata: ["a", "b", "e\u{301}"].map(|key| (key.into(), Some(-1))).into(),
        few: ["z", "a", "\u{fb33}"].map(|key| (key.into(), true)).into(),
        tags: ["a", "b c"].map(String::from).into(),
        details: json!({ "a": [1, -1.5, "e\u{301}", null], "b": { "c": u64::MAX, "d": 1e300 } }),
        ratio: 1e-7,
        at: SystemTime::now(),
        day: chrono::NaiveDate::MIN,
        id: uuid::Uuid::max(),
        address: std::net::Ipv6Addr::LOCALHOST.into(),
        method: Method::Card { token: "t".into() },
    };
    let hash = everything.command_hash();
    let mut again = None;
    assert_eq!(allocations(|| again = Some(everything.verdict(&hash))), 0);
    assert_eq!(again, Some(idem_core::Verdict::Same));
}

#[test]
fn only_a_map_in_another_order_than_its_texts_allocates() {
    macro_rules! allocations_of_map {
        ($($key:expr),*) => {{
            #[derive(idem_core::IdempotentCommand)]
            #[idem(operation = "t", version = 1)]
            struct Map {
                map: BTreeMap<i32, bool>,
            }
            let map = Map { map: [$($key),*].map(|key| (key, true)).into() };
            allocations(|| {
                map.command_hash();
            })
        }};
    }
    assert_eq!(allocations_of_map!(10, 11, 12, 13, 14, 15, 16, 17, 18, 19), 0);
    assert_eq!(allocations_of_map!(9, 10, 11), 0, "a few entries are sorted on the stack");
    assert!(allocations_of_map!(2, 3, 4, 5, 6, 7, 8, 9, 10, 11) > 0);
}

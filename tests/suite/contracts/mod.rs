//! The contract: what a reviewer sees of a hash, and what cannot hide from them.

mod coverage;
mod diff;
mod drift;
mod folder;
mod snapshot;
mod text;
mod versions;

use std::collections::BTreeMap;

use idem_core::{Canonical, IdempotentCommand};
use rust_decimal::Decimal;
use serde::Deserialize;

/// A command with a bit of everything.
#[derive(Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "place_order", version = 3)]
struct PlaceOrder {
    #[idem(trim, uppercase)]
    currency: String,
    #[idem(default = "caf\u{e9}\u{a0}\"\r\n")]
    channel: Option<String>,
    #[idem(decimal(scale = 2), default = "0.5")]
    #[serde(skip)]
    tip: Option<Decimal>,
    items: Vec<Item>,
    billing: Address,
    shipping: Option<Address>,
    method: Method,
    parent: Option<Box<Category>>,
    #[idem(rename = "e-mail: \u{ab}x\u{bb}?")]
    note: Option<Option<String>>,
    flags: BTreeMap<u32, Option<bool>>,
    range: Option<(u8, Vec<Item>)>,
    token: Vec<u8>,
    #[idem(exclude)]
    #[serde(skip)]
    #[expect(dead_code)]
    trace_id: Option<String>,
}

#[derive(Canonical, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    sku: Sku,
    #[idem(default = 1)]
    quantity: u32,
}

#[derive(Canonical, Clone, Deserialize)]
struct Sku(String);

#[derive(Canonical, Clone, Default, Deserialize)]
struct Address {
    city: String,
}

#[derive(Canonical, Clone, Deserialize)]
#[idem(rename_all = "snake_case")]
enum Method {
    Cash,
    CardToken(#[idem(verbatim)] String),
    Split(u8, u8),
    Bank { iban: String, address: Option<Address> },
}

#[derive(Canonical, Clone, Deserialize)]
struct Category {
    name: String,
    parents: Vec<Category>,
}

fn typical() -> PlaceOrder {
    PlaceOrder {
        currency: " eur".into(),
        channel: Some("web\r\n".into()),
        tip: None,
        items: vec![Item { sku: Sku("SKU-1".into()), quantity: 2 }],
        billing: Address { city: "K\u{f6}ln ".into() },
        shipping: None,
        method: Method::Bank { iban: "NL91".into(), address: None },
        parent: Some(Box::new(Category { name: "books".into(), parents: vec![] })),
        note: Some(None),
        flags: [(9, None), (10, Some(true))].into(),
        range: None,
        token: vec![0, 255],
        trace_id: None,
    }
}

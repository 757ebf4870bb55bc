//! The commands that are hashed, for idem and for serde.

use std::collections::BTreeMap;

use idem_core::{Canonical, IdempotentCommand};
use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

/// The nested command of vector `pay-01`: 434 bytes of canonical text.
#[derive(IdempotentCommand, Serialize)]
#[idem(operation = "create_payment", version = 1)]
pub(crate) struct CreatePayment {
    account_id: String,
    #[idem(decimal(scale = 2))]
    #[serde(serialize_with = "as_text")]
    amount: Decimal,
    #[idem(uppercase)]
    currency: String,
    items: Vec<Item>,
    merchant_reference: String,
    metadata: BTreeMap<String, String>,
    #[idem(default = "web")]
    channel: Option<String>,
}

#[derive(Canonical, Serialize)]
struct Item {
    sku: String,
    quantity: u32,
    #[idem(decimal(scale = 2))]
    #[serde(serialize_with = "as_text")]
    unit_price: Decimal,
}

/// Six texts.
#[derive(IdempotentCommand, Serialize)]
#[idem(operation = "create_payment", version = 1)]
pub(crate) struct Flat {
    account_id: String,
    amount: String,
    api_version: String,
    channel: Option<String>,
    currency: String,
    merchant_reference: String,
}

fn as_text<S: Serializer>(amount: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(amount)
}

pub(crate) fn nested() -> CreatePayment {
    let item = |n: u32| Item {
        sku: format!("SKU-{:06}", 119 + n),
        quantity: n,
        unit_price: Decimal::from(n + 18) + Decimal::new(99, 2),
    };
    let metadata = [("source", "checkout-page"), ("invoice_id", "inv-2026-0042"), ("customer", "cus_1234567890")];
    CreatePayment {
        account_id: "acc_8f14e45f".into(),
        amount: Decimal::new(12345, 1),
        currency: "eur".into(),
        items: (1..=3).map(item).collect(),
        merchant_reference: "order-1041-invoice-1".into(),
        metadata: metadata.map(|(key, value)| (key.into(), value.into())).into(),
        channel: Some("mobile".into()),
    }
}

pub(crate) fn flat() -> Flat {
    Flat {
        account_id: "acc_8f14e45f".into(),
        amount: "1234.50".into(),
        api_version: "2026-05-18".into(),
        channel: Some("mobile".into()),
        currency: "EUR".into(),
        merchant_reference: "order-1041-invoice-1".into(),
    }
}

/// What hand-written code often hashes: a sorted dictionary of texts.
pub(crate) type Texts<'a> = BTreeMap<&'a str, Option<String>>;

impl CreatePayment {
    pub(crate) fn texts(&self) -> Texts<'static> {
        const ITEMS: [[&str; 3]; 3] = [
            ["items.0.sku", "items.0.quantity", "items.0.unit_price"],
            ["items.1.sku", "items.1.quantity", "items.1.unit_price"],
            ["items.2.sku", "items.2.quantity", "items.2.unit_price"],
        ];
        let mut texts = Texts::from([
            ("account_id", Some(self.account_id.clone())),
            ("amount", Some(self.amount.to_string())),
            ("currency", Some(self.currency.to_ascii_uppercase())),
            ("merchant_reference", Some(self.merchant_reference.clone())),
            ("channel", self.channel.clone()),
        ]);
        for (item, [sku, quantity, unit_price]) in self.items.iter().zip(ITEMS) {
            texts.insert(sku, Some(item.sku.clone()));
            texts.insert(quantity, Some(item.quantity.to_string()));
            texts.insert(unit_price, Some(item.unit_price.to_string()));
        }
        for key in ["source", "invoice_id", "customer"] {
            texts.insert(key, self.metadata.get(key).cloned());
        }
        texts
    }
}

impl Flat {
    pub(crate) fn texts(&self) -> Texts<'static> {
        Texts::from([
            ("account_id", Some(self.account_id.clone())),
            ("amount", Some(self.amount.clone())),
            ("api_version", Some(self.api_version.clone())),
            ("channel", self.channel.clone()),
            ("currency", Some(self.currency.clone())),
            ("merchant_reference", Some(self.merchant_reference.clone())),
        ])
    }
}

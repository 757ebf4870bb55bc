//! The published vectors, which two independent implementations computed.

mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZero;

use idem_core::{Canonical, CommandHash, IdempotentCommand};
use rust_decimal::Decimal;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::order::hex;
use super::preimage;

#[test]
fn every_vector_is_reproduced_through_the_derive() {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/canonical-form-1.json")).unwrap();
    let cases: BTreeMap<&str, Vec<String>> = cases().into_iter().chain(types::cases()).chain(payments()).collect();
    let mut seen = BTreeSet::new();
    for vector in vectors["vectors"].as_array().unwrap() {
        let id = vector["id"].as_str().unwrap();
        if id.starts_with("evo") {
            continue; // versions: a file of their own
        }
        seen.insert(id);
        let cases = cases.get(id).unwrap_or_else(|| panic!("no case for {id}: {}", vector["what"]));
        for preimage in cases {
            assert_eq!(preimage, vector["preimage"].as_str().unwrap(), "{id}: {}", vector["what"]);
            assert_eq!(hex(&Sha256::digest(preimage)), vector["sha256"].as_str().unwrap(), "{id}");
        }
    }
    let known: BTreeSet<_> = cases.keys().copied().collect();
    assert_eq!(known, seen, "each case has its vector");
}

#[test]
fn hashes_are_sha256_of_the_preimage() {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/canonical-form-1.json")).unwrap();
    let hex = |id: &str| {
        let vector = vectors["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap();
        vector["sha256"].as_str().unwrap().to_owned()
    };
    let hash = payment("1234.5", "eur", Some("mobile")).command_hash();
    assert_eq!(hash.to_string(), format!("idem1.1.{}", hex("pay-01")));
    assert_eq!(hash.to_string().parse::<CommandHash>().unwrap(), hash);
    assert_eq!(Ping {}.command_hash().to_string(), format!("idem1.1.{}", hex("empty-01")));
    let seed = seed::<CreateRefund>();
    assert_eq!(seed.command_hash().to_string(), format!("idem1.1.{}", hex("seed-02")));
}

fn payments() -> Vec<(&'static str, Vec<String>)> {
    let pay = |amount, currency, channel| vec![payment(amount, currency, channel).preimage()];
    vec![
        ("pay-01", pay("1234.5", "eur", Some("mobile"))),
        ("pay-02", pay("1234.500", "EUR", Some("mobile"))),
        ("pay-03", pay("1234.5", "eur", None)),
        ("pay-04", pay("1234.5", "eur", Some("web"))),
        ("pay-05", pay("1234.51", "eur", None)),
        ("pay-06", pay("1234.505", "eur", None)),
        ("seed-01", vec![seed::<CreatePaymentSeed>().preimage()]),
        ("seed-02", vec![seed::<CreateRefund>().preimage()]),
    ]
}

#[derive(IdempotentCommand)]
#[idem(operation = "create_payment", version = 1)]
struct CreatePayment {
    account_id: String,
    #[idem(decimal(scale = 2))]
    amount: Decimal,
    #[idem(uppercase)]
    currency: String,
    items: Vec<Item>,
    merchant_reference: String,
    metadata: BTreeMap<String, String>,
    #[idem(default = "web")]
    channel: Option<String>,
}

#[derive(Canonical)]
struct Item {
    sku: String,
    quantity: u32,
    #[idem(decimal(scale = 2))]
    unit_price: Decimal,
}

fn payment(amount: &str, currency: &str, channel: Option<&str>) -> CreatePayment {
    let item = |n: u32| Item {
        sku: format!("SKU-{:06}", 119 + n),
        quantity: n,
        unit_price: Decimal::from(n + 18) + Decimal::new(99, 2),
    };
    let metadata = [("source", "checkout-page"), ("invoice_id", "inv-2026-0042"), ("customer", "cus_1234567890")];
    CreatePayment {
        account_id: "acc_8f14e45f".into(),
        amount: amount.parse().unwrap(),
        currency: currency.into(),
        items: (1..=3).map(item).collect(),
        merchant_reference: "order-1041-invoice-1".into(),
        metadata: metadata.map(|(key, value)| (key.into(), value.into())).into(),
        channel: channel.map(Into::into),
    }
}

macro_rules! seeds {
    ($($name:ident $operation:literal),*) => {$(
        #[derive(IdempotentCommand)]
        #[idem(operation = $operation, version = 1)]
        struct $name {
            api_version: &'static str,
            account_id: &'static str,
            #[idem(decimal(scale = 2))]
            amount: Decimal,
            currency: &'static str,
            merchant_reference: &'static str,
        }

        impl Seed for $name {
            fn seed() -> Self {
                Self {
                    api_version: "2026-05-18",
                    account_id: "acc_8f14e45f",
                    amount: Decimal::TEN,
                    currency: "EUR",
                    merchant_reference: "order-1041-invoice-1",
                }
            }
        }
    )*};
}

trait Seed {
    fn seed() -> Self;
}

fn seed<T: Seed>() -> T {
    T::seed()
}

seeds!(CreatePaymentSeed "create_payment", CreateRefund "create_refund");

#[derive(IdempotentCommand)]
#[idem(operation = "ping", version = 1, allow_empty)]
struct Ping {}

#[derive(IdempotentCommand)]
#[idem(operation = "ping", version = 1, allow_empty)]
struct PingUnit;

#[derive(Canonical)]
#[idem(rename_all = "snake_case")]
enum Method {
    Cash,
    Card(String),
    Split(u8, u8),
    Bank { iban: String, bic: Option<String> },
}

fn cases() -> Vec<(&'static str, Vec<String>)> {
    let decimal = |text: &str| text.parse::<Decimal>().unwrap();
    let weird = [
        ("\u{20ac}", "Euro Sign"),
        ("\r", "Carriage Return"),
        ("\u{fb33}", "Hebrew Letter Dalet With Dagesh"),
        ("1", "One"),
        ("\u{1f602}", "Smiley"),
        ("\u{80}", "Control\u{7f}"),
        ("\u{f6}", "Latin Small Letter O With Diaeresis"),
        ("\n", "Newline"),
        ("</script>", "Browser Challenge"),
    ];
    vec![
        ("empty-01", vec![Ping {}.preimage(), PingUnit.preimage()]),
        ("bool-01", vec![preimage!(bool = true)]),
        ("int-01", vec![preimage!(u8 = 0)]),
        ("int-02", vec![preimage!(i64 = i64::MIN), preimage!(i128 = i64::MIN.into())]),
        ("int-03", vec![preimage!(u64 = (1 << 53) + 1)]),
        ("int-04", vec![preimage!(u128 = u128::MAX)]),
        ("int-05", vec![preimage!(u32 = 5), preimage!(u64 = 5), preimage!(NonZero<i8> = NonZero::new(5).unwrap())]),
        ("dec-01", vec![preimage!(Decimal = decimal("10.00"))]),
        (
            "dec-02",
            vec![preimage!(
                #[idem(decimal(scale = 2))]
                Decimal = decimal("-0.00")
            )],
        ),
        (
            "dec-03",
            vec![preimage!(
                #[idem(decimal(scale = 2))]
                Decimal = decimal("10")
            )],
        ),
        (
            "dec-04",
            vec![preimage!(
                #[idem(decimal(scale = 2))]
                Decimal = decimal("10.009")
            )],
        ),
        ("dec-05", vec![preimage!(Decimal = decimal("-0.5"))]),
        ("dec-06", vec![preimage!(Decimal = Decimal::MAX)]),
        ("dec-07", vec![preimage!(Decimal = Decimal::new(1, 28))]),
        ("str-01", vec![preimage!(&'static str = "\u{20ac}$\u{f}\nA'B\"\\\u{7f}/\u{8}\t\u{c}\r\u{2028}")]),
        (
            "str-02",
            vec![preimage!(
                #[idem(verbatim)]
                String = "e\u{301}".into()
            )],
        ),
        ("str-03", vec![preimage!(String = "e\u{301}".into()), preimage!(Box<str> = "\u{e9}".into())]),
        (
            "str-04",
            vec![preimage!(
                #[idem(uppercase)]
                String = "stra\u{df}e \u{131}i".into()
            )],
        ),
        (
            "str-05",
            vec![preimage!(
                #[idem(uppercase)]
                String = "i\u{307}".into()
            )],
        ),
        ("str-06", vec![preimage!(String = "\u{c5}".into()), preimage!(String = "A\u{30a}".into())]),
        ("str-07", vec![preimage!(String = "\u{fb01}".into())]),
        ("str-08", vec![preimage!(String = "\u{ff21}".into())]),
        ("str-09", vec![preimage!(String = "a\u{1acf}\u{316}".into())]),
        ("str-10", vec![preimage!(String = "\u{e000}\u{301}\u{316}".into())]),
        ("chr-01", vec![preimage!(char = '\u{1f602}')]),
        (
            "byt-01",
            vec![
                preimage!(Vec<u8> = vec![0, 255, 16]),
                preimage!([u8; 3] = [0, 255, 16]),
                preimage!(&'static [u8] = &[0, 255, 16]),
            ],
        ),
        ("byt-02", vec![preimage!(Vec<u16> = vec![0, 255, 16])]),
        ("opt-01", vec![preimage!(Option<u32> = None), preimage!(Box<Option<u32>> = Box::new(None))]),
        ("opt-02", vec![preimage!(Option<u32> = Some(5)), preimage!(Option<Option<u32>> = Some(Some(5)))]),
        ("opt-03", vec![preimage!(Option<Option<u32>> = Some(None))]),
        ("opt-04", vec![preimage!(Vec<Option<u32>> = vec![None, Some(1)])]),
        ("opt-05", vec![preimage!(Vec<Option<Option<u32>>> = vec![None, Some(None), Some(Some(1))])]),
        ("tup-01", vec![preimage!((u8, String) = (1, "a".into()))]),
        ("tup-02", vec![preimage!(() = ())]),
        ("enm-01", vec![preimage!(Method = Method::Cash)]),
        ("enm-02", vec![preimage!(Method = Method::Card("tok_1".into()))]),
        ("enm-03", vec![preimage!(Method = Method::Split(30, 70))]),
        ("enm-04", vec![preimage!(Method = Method::Bank { iban: "NL91ABNA0417164300".into(), bic: None })]),
        ("seq-01", vec![preimage!(Vec<String> = ["b", "a", "b"].map(String::from).into())]),
        ("map-01", vec![preimage!(BTreeMap<char, u8> = [('\u{1f600}', 1), ('\u{fb33}', 2)].into())]),
        (
            "map-02",
            vec![
                preimage!(HashMap<u64, Option<bool>> = [(9, Some(true)), (10, None)].into()),
                preimage!(BTreeMap<u64, Option<bool>> = [(9, Some(true)), (10, None)].into()),
            ],
        ),
        ("map-03", vec![preimage!(BTreeMap<String, &'static str> = weird.map(|(k, v)| (k.into(), v)).into())]),
    ]
}

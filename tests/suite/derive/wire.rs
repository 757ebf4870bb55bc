//! What serde leaves out of a command before it can be hashed: the contract says where.

use std::collections::BTreeMap;

use idem_core::{Canonical, IdempotentCommand, contract};
use serde::Deserialize;

fn body<C: IdempotentCommand>() -> String {
    let contract = C::contract();
    let text = contract.to_string();
    assert_eq!(contract::parse(&text), Ok(contract), "{text}");
    text.split_once("unknown fields: ").unwrap().1.to_owned()
}

#[test]
fn members_that_come_in_another_way_are_named() {
    #[derive(Deserialize, IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    #[allow(dead_code)]
    struct Pay {
        #[serde(skip)]
        account: String,
        #[serde(default, skip_deserializing)]
        #[idem(rename = "the note")]
        note: Option<String>,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
        #[serde(rename = "flatten", default = "zero", skip_serializing)]
        plain: u8,
        #[serde(skip)]
        #[idem(exclude)]
        trace: u8,
    }
    fn zero() -> u8 {
        0
    }
    assert_eq!(
        body::<Pay>(),
        "not denied here\n\ncommand: object\n  account (not deserialized): text\n  plain: integer\n  \
         rest (flattened): map from text to text\n  \"the note\"? (not deserialized): text\n  trace: not hashed\n"
    );
}

#[test]
fn variants_that_come_in_another_way_are_named() {
    #[derive(Canonical, Deserialize)]
    #[allow(dead_code)]
    enum Method {
        Cash,
        Card {
            #[serde(flatten)]
            card: BTreeMap<String, String>,
        },
        #[serde(other)]
        Unknown,
    }
    #[derive(Canonical, Deserialize)]
    #[serde(untagged, deny_unknown_fields)]
    #[allow(dead_code)]
    enum Party {
        Person { name: String },
        Firm(String),
    }
    #[derive(Deserialize, IdempotentCommand)]
    #[serde(deny_unknown_fields)]
    #[idem(operation = "t", version = 1)]
    #[allow(dead_code)]
    struct Pay {
        method: Method,
        to: Party,
    }
    assert_eq!(
        body::<Pay>(),
        "denied\n\ncommand: object\n  method: one of\n    Card: object\n      card (flattened): map from text to text\n    \
         Cash\n    Unknown (any other)\n  to: one of\n    Firm (untagged 2): text\n    \
         Person (untagged 1): object\n      name: text\n"
    );
}

/// `deny_unknown_fields` beside an attribute that undoes it is no promise.
#[test]
fn unknown_fields_count_as_denied_only_where_they_are() {
    macro_rules! denied {
        ($($(#[$meta:meta])* { $(#[$field:meta])* })*) => {
            vec![$({
                #[derive(Deserialize, IdempotentCommand)]
                $(#[$meta])*
                #[idem(operation = "t", version = 1)]
                #[allow(dead_code)]
                struct Pay {
                    $(#[$field])*
                    v: V,
                }
                impl From<Wire> for Pay {
                    fn from(_: Wire) -> Self {
                        unreachable!("never read")
                    }
                }
                Pay::contract().denies_unknown()
            }),*]
        };
    }
    #[derive(Canonical, Default, Deserialize)]
    struct V {
        #[allow(dead_code)]
        v: u8,
    }
    #[derive(Deserialize)]
    struct Wire {}
    macro_rules! denied_of_enum {
        ($($(#[$meta:meta])* { $($variants:tt)* })*) => {
            vec![$({
                #[derive(Deserialize, IdempotentCommand)]
                $(#[$meta])*
                #[idem(operation = "t", version = 1, allow_empty)]
                #[allow(dead_code)]
                enum Pay { $($variants)* }
                Pay::contract().denies_unknown()
            }),*]
        };
    }
    let denied = denied! {
        #[serde(deny_unknown_fields)] {}
        #[serde(rename_all = "camelCase", deny_unknown_fields)] {}
        #[serde(bound = "")] #[serde(deny_unknown_fields)] {}
        {}
        #[serde(rename = "deny_unknown_fields")] {}
        #[serde(deny_unknown_fields)] { #[serde(flatten)] }
        #[serde(deny_unknown_fields, from = "Wire")] {}
        #[serde(deny_unknown_fields, try_from = "Wire")] {}
        #[serde(deny_unknown_fields)] { #[serde(alias = "w")] }
        #[serde(deny_unknown_fields, transparent)] {}
    };
    assert_eq!(denied, [true, true, true, false, false, false, false, false, true, false]);
    let denied = denied_of_enum! {
        #[serde(deny_unknown_fields)] { Cash, Card(V), Bank { v: u8 } }
        #[serde(tag = "type", content = "of", deny_unknown_fields)] { Cash, Card(V), Bank { v: u8 } }
        #[serde(tag = "type", deny_unknown_fields)] { Cash {}, Bank { v: u8 } }
        #[serde(tag = "type", deny_unknown_fields)] { Bank { v: u8 }, #[serde(skip_deserializing)] Cash }
        #[serde(tag = "type", deny_unknown_fields)] { Cash, Bank { v: u8 } }
        #[serde(tag = "type")] #[serde(deny_unknown_fields)] { Bank { v: u8 }, Card(V) }
        #[serde(untagged, deny_unknown_fields)] { Bank { v: u8 }, Pair(u8, u8) }
        #[serde(untagged, deny_unknown_fields)] { Bank { v: u8 }, Card(V) }
        #[serde(deny_unknown_fields)] { Bank { v: u8 }, #[serde(untagged)] Card(V) }
    };
    assert_eq!(denied, [true, true, true, true, false, false, true, false, false]);
}

/// Where the contract says `denied`, serde refuses; where it says otherwise beside `deny_unknown_fields`, serde does not.
#[test]
fn serde_denies_as_the_contract_says() {
    #[derive(Canonical, Deserialize)]
    struct Card {
        #[allow(dead_code)]
        number: u8,
    }
    macro_rules! of {
        ($(#[$meta:meta])* { $($variants:tt)* }, $($text:literal),*) => {{
            #[derive(Deserialize, IdempotentCommand)]
            $(#[$meta])*
            #[idem(operation = "t", version = 1, allow_empty)]
            #[allow(dead_code)]
            enum Pay { $($variants)* }
            let is_refused = [$(serde_json::from_str::<Pay>($text).is_err()),*];
            assert!(!is_refused.contains(&!is_refused[0]), "{is_refused:?}");
            assert_eq!(Pay::contract().denies_unknown(), is_refused[0]);
        }};
    }
    of!(#[serde(tag = "type", deny_unknown_fields)] { Cash {}, Bank { v: u8 } },
        r#"{"type":"Cash","capture":false}"#, r#"{"type":"Bank","v":1,"capture":false}"#);
    of!(#[serde(tag = "type", deny_unknown_fields)] { Cash, Bank { v: u8 } }, r#"{"type":"Cash","capture":false}"#);
    of!(#[serde(tag = "type", deny_unknown_fields)] { Card(Card), Bank { v: u8 } },
        r#"{"type":"Card","number":1,"capture":false}"#);
    of!(#[serde(untagged, deny_unknown_fields)] { Card(Card), Bank { v: u8 } }, r#"{"number":1,"capture":false}"#);
    of!(#[serde(tag = "type", content = "of", deny_unknown_fields)] { Cash, Bank { v: u8 } },
        r#"{"type":"Cash","capture":false}"#, r#"{"type":"Bank","of":{"v":1},"capture":false}"#,
        r#"{"type":"Bank","of":{"v":1,"capture":false}}"#);
    of!(#[serde(deny_unknown_fields)] { Cash, Bank { v: u8 } },
        r#"{"Cash":{"capture":false}}"#, r#"{"Bank":{"v":1,"capture":false}}"#);
}

/// Code of the user's own is as out of sight as a `Deserialize` of theirs: what it reads as one is one command, and the
/// contract says nothing of it. The documentation does.
#[test]
fn what_code_of_ones_own_reads_as_one_is_one_command_and_no_part_of_the_contract() {
    #[derive(Deserialize, IdempotentCommand)]
    #[serde(deny_unknown_fields)]
    #[idem(operation = "t", version = 1)]
    struct Plain {
        cents: u64,
        to: To,
    }
    #[derive(Deserialize, IdempotentCommand)]
    #[serde(deny_unknown_fields)]
    #[idem(operation = "t", version = 1)]
    struct Pay {
        #[serde(deserialize_with = "whole")]
        cents: u64,
        to: To,
    }
    #[derive(Canonical, Deserialize)]
    #[serde(from = "String", deny_unknown_fields)]
    struct To {
        name: String,
    }
    impl From<String> for To {
        fn from(name: String) -> Self {
            Self { name: name.to_lowercase() }
        }
    }
    fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        f64::deserialize(from).map(|cents| cents as u64)
    }
    let pay = |json| serde_json::from_str::<Pay>(json).unwrap().command_hash();
    assert_eq!(pay(r#"{"cents":1,"to":"Ada"}"#), pay(r#"{"cents":1.9,"to":"ADA"}"#));
    assert_eq!(body::<Pay>(), body::<Plain>());
    assert_eq!(body::<Pay>(), "denied\n\ncommand: object\n  cents: integer\n  to: object\n    name: text\n");
}

/// The holes that the contract names are there: two requests, one command.
#[test]
fn two_requests_that_serde_makes_one_are_one_command() {
    #[derive(Deserialize, IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Pay {
        cents: u64,
        #[serde(skip)]
        account: String,
    }
    let pay = |json| serde_json::from_str::<Pay>(json).unwrap().command_hash();
    assert_eq!(pay(r#"{"cents":1}"#), pay(r#"{"cents":1,"capture":false}"#));
    assert_eq!(pay(r#"{"cents":1}"#), pay(r#"{"cents":1,"account":"acc_2"}"#));
}

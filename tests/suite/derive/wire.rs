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
         Cash\n    Unknown (any other)\n  to: one of(unknown fields denied)\n    Firm (untagged): text\n    \
         Person (untagged): object\n      name: text\n"
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
    };
    assert_eq!(denied, [true, true, true, false, false, false, false, false, true]);
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

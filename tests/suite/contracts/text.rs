//! The contract's text: stable, free of Rust names, and read back by one parser.

use idem_core::{Canonical, Contract, IdempotentCommand, contract};
use proptest::prelude::*;

use super::PlaceOrder;

#[test]
fn the_text_of_a_contract_says_all_that_decides_the_hash() {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("contract_of_everything", PlaceOrder::contract());
    });
}

#[test]
fn no_rust_name_is_part_of_a_contract() {
    let text = PlaceOrder::contract().to_string();
    for name in ["PlaceOrder", "Item", "Address", "Method", "Category", "Decimal", "Sku", "u32", "String", "idem_"] {
        assert!(!text.contains(name), "{name} in\n{text}");
    }
}

#[test]
fn renaming_and_moving_types_and_fields_changes_no_contract() {
    mod elsewhere {
        #[derive(idem_core::Canonical)]
        pub(super) struct Other {
            pub(super) b: u64,
            pub(super) a: Box<str>,
        }
        #[derive(idem_core::IdempotentCommand)]
        #[idem(operation = "t", version = 1)]
        pub(super) struct Moved {
            #[idem(rename = "list")]
            pub(super) many: Vec<Other>,
        }
    }

    #[derive(Canonical)]
    struct One {
        a: String,
        b: u8,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Here {
        list: Box<[One]>,
    }
    assert_eq!(elsewhere::Moved::contract(), Here::contract());
    let _ = elsewhere::Other { b: 1, a: "".into() };
}

#[test]
fn a_contract_is_read_back_from_its_text() {
    let contract = PlaceOrder::contract();
    assert_eq!(contract::parse(&contract.to_string()), Ok(contract));
    for text in EVERY_SHAPE {
        let contract = contract::parse(text).expect(text);
        assert_eq!(contract.to_string(), text);
    }
}

#[test]
fn text_that_is_no_contract_is_refused_with_its_line() {
    let good = EVERY_SHAPE[0];
    assert!(contract::parse(good).is_ok());
    for (from, to, line) in [
        ("idem contract 1", "idem contract 2", 1),
        ("version: 1", "version: x", 3),
        ("denied", "maybe", 5),
        ("  a: text", "  a: TEXT", 8),
        ("  a: text", "    a: text", 8),
        ("  a: text", "  a text", 8),
        ("  a: text", "  a: text(upper", 8),
        ("  a: text", "  \"a: text", 8),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        assert_eq!(contract::parse(&bad).expect_err(&bad).line(), line, "{bad}");
    }
    for end in 0..good.len() - 1 {
        // Cut anywhere, it is another contract or none, and never a panic.
        let _ = contract::parse(&good[..end]).map(|contract: Contract| contract.to_string());
    }
}

#[test]
fn two_types_of_one_name_are_two() {
    mod a {
        #[derive(idem_core::Canonical)]
        pub(super) struct Item {
            pub(super) x: u8,
        }
    }
    mod b {
        #[derive(idem_core::Canonical)]
        pub(super) struct Item {
            pub(super) y: u8,
        }
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Both {
        a: a::Item,
        b: b::Item,
    }
    let text = Both::contract().to_string();
    assert!(text.ends_with("  a: object\n    x: integer\n  b: object\n    y: integer\n"), "{text}");
    assert!(Both { a: a::Item { x: 1 }, b: b::Item { y: 1 } }.preimage().contains(r#""x":"1""#));
}

#[test]
fn a_newtype_that_holds_itself_is_told_once() {
    #[derive(Canonical)]
    struct Forest(Vec<Forest>);
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Plant {
        a: Forest,
        b: Forest,
    }
    let contract = Plant::contract();
    let text = contract.to_string();
    assert!(text.ends_with("command: object\n  a: #1 list of #1\n  b: #1\n"), "{text}");
    assert_eq!(contract::parse(&text), Ok(contract));
}

#[test]
fn commands_that_are_no_objects_have_contracts() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Name(#[idem(uppercase)] Option<String>);
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    #[expect(dead_code)]
    enum Change {
        Open,
        Close { at: u64 },
    }
    let body = |contract: Contract| {
        assert_eq!(contract::parse(&contract.to_string()), Ok(contract.clone()));
        contract.to_string().split_once("\n\n").unwrap().1.to_owned()
    };
    assert_eq!(body(Name::contract()), "command: optional text(uppercase)\n");
    assert_eq!(body(Change::contract()), "command: one of\n  Close: object\n    at: integer\n  Open\n");
}

/// The grammar, shape by shape.
const EVERY_SHAPE: [&str; 3] = [
    r#"idem contract 1
operation: t
version: 1
form: idem/1
unknown fields: denied

command: object
  a: text
"#,
    r#"idem contract 1
operation: t.u-v_w
version: 2147483647
form: idem/2
unknown fields: not denied here

command: #1 one of
  "": nothing
  a: list of optional map from text to #1
  b
  c: tuple
    0: optional #2 object(unknown fields denied)
      " \u00ab = \"?: ": text(trim, uppercase) = " = \u00a0\\u00a0 "
      x: not hashed
      y?: #2 = {"a":[null,"\n"]}
    1: list of tuple
    2: date-time(precision = "ms, or so")
  d: object
"#,
    r#"idem contract 1
operation: t
version: 1
form: idem/1
unknown fields: not denied here

command: list of list of ip address
"#,
];

/// One edit: a piece of the text taken out, doubled, or put somewhere else.
fn edits() -> impl Strategy<Value = Vec<(u8, usize, usize, usize)>> {
    prop::collection::vec((0..3u8, any::<usize>(), 0..12usize, any::<usize>()), 1..6)
}

proptest! {
    #[test]
    fn whatever_the_parser_takes_it_prints_the_same(
        which in 0..4usize,
        edits in edits(),
    ) {
        let own = PlaceOrder::contract().to_string();
        let mut text: Vec<char> = EVERY_SHAPE.get(which).copied().unwrap_or(&own).chars().collect();
        for (kind, from, len, to) in edits {
            let from = from % (text.len() + 1);
            let piece = text[from..text.len().min(from + len)].to_vec();
            if kind == 0 {
                text.drain(from..from + piece.len());
            }
            if kind > 0 {
                let to = to % (text.len() + 1);
                text.splice(to..to, piece);
            }
        }
        if let Ok(contract) = contract::parse(&String::from_iter(text)) {
            prop_assert_eq!(contract::parse(&contract.to_string()), Ok(contract));
        }
    }
}

//! The contract's text: stable, free of Rust names, and read back by one parser.

use std::cell::RefCell;

use idem_core::canonical::shape::{Member, Variant, Wire};
use idem_core::canonical::{Shape, Shapes};
use idem_core::{Canonical, Contract, IdempotentCommand, Sink, contract};
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

/// The compiler calls both `…::Item`.
#[test]
fn two_types_of_one_name_in_two_blocks_are_two() {
    trait Held {
        type Item<'a>: Canonical;
        type Name: Canonical;
    }
    struct First;
    struct Second;
    {
        #[derive(Canonical)]
        struct Item<'a> {
            x: &'a str,
        }
        #[derive(Canonical)]
        struct Name(Vec<Name>);
        impl Held for First {
            type Item<'a> = Item<'a>;
            type Name = Name;
        }
    }
    {
        #[derive(Canonical)]
        struct Item {
            y: u8,
        }
        #[derive(Canonical)]
        struct Name(Vec<bool>);
        impl Held for Second {
            type Item<'a> = Item;
            type Name = Name;
        }
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Both<'a> {
        a: <First as Held>::Item<'a>,
        b: <Second as Held>::Item<'a>,
        c: <First as Held>::Item<'static>,
        d: <First as Held>::Name,
        e: <Second as Held>::Name,
    }
    assert_eq!(std::any::type_name::<<First as Held>::Name>(), std::any::type_name::<<Second as Held>::Name>());
    let text = Both::contract().to_string();
    assert!(
        text.ends_with(
            "  a: #1 object\n    x: text\n  b: object\n    y: integer\n  c: #1\n  d: #2 list of #2\n  e: list of bool\n"
        ),
        "{text}"
    );
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
fn rules_of_ones_own_are_read_back_whatever_they_are_called() {
    SHAPE.set(Shape::Map {
        key: "Money to \u{20ac}".into(),
        value: Box::new(Shape::leaf("Money (net)").with_rule("a, b").with_rule("in \u{20ac})").with_rule("cents")),
    });
    let contract = Told::contract();
    let text = contract.to_string();
    let body = text.split_once("\n\n").unwrap().1;
    assert_eq!(
        body,
        "command: map from \"Money\\u0020to\\u0020\\u20ac\" to \"Money\\u0020\\u0028net\\u0029\"\
         (\"a\\u002c\\u0020b\", \"in\\u0020\\u20ac\\u0029\", cents)\n"
    );
    assert_eq!(contract::parse(&text), Ok(contract.clone()));
    assert_eq!(Contract::diff(&contract, &contract::parse(&text).unwrap()), []);
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

    /// Also where the user's own types say what they are called, and their rules.
    #[test]
    fn whatever_a_contract_prints_is_read_back_as_it_was(shape in shape()) {
        SHAPE.set(shape);
        let contract = Told::contract();
        let text = contract.to_string();
        prop_assert!(text.bytes().all(|b| matches!(b, b'\n' | b' '..=b'~')), "{}", text);
        prop_assert_eq!(contract::parse(&text), Ok(contract), "{}", text);
    }
}

thread_local! {
    static SHAPE: RefCell<Shape> = const { RefCell::new(Shape::Nothing) };
}

/// A type that describes itself as it is told.
struct AsTold;

impl Canonical for AsTold {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        sink.put(b"null");
    }

    fn shape(_: &mut Shapes) -> Shape {
        SHAPE.with_borrow(Clone::clone)
    }
}

#[derive(IdempotentCommand)]
#[idem(operation = "t", version = 1)]
struct Told(AsTold);

fn any_word() -> BoxedStrategy<String> {
    const TRAPS: [&str; 22] = [
        "",
        " ",
        "a, b",
        "x)",
        "(",
        "list of text",
        "optional",
        "object",
        "one of",
        "nothing",
        "Money",
        "a to b",
        "name(a,b)",
        "name(a)b(c)",
        "name(",
        " = 1",
        "\"q\"",
        "\"",
        "\\u0020",
        "#1",
        "null",
        "5",
    ];
    prop_oneof![prop::sample::select(&TRAPS[..]).prop_map(str::to_owned), "[a-z -]{1,4}", "[ -~]{0,6}", ".{0,4}"]
        .boxed()
}

fn wire() -> impl Strategy<Value = Option<Wire>> {
    prop::sample::select(vec![
        None,
        None,
        Some(Wire::NotDeserialized),
        Some(Wire::Flattened),
        Some(Wire::Untagged(1)),
        Some(Wire::Untagged(20)),
        Some(Wire::AnyOther),
    ])
}

fn shape() -> impl Strategy<Value = Shape> {
    let rules = prop::collection::vec(any_word().prop_map(Into::into), 0..3);
    let leaf = (any_word(), rules).prop_map(|(class, rules)| Shape::Leaf { class: class.into(), rules });
    prop_oneof![5 => leaf, 1 => Just(Shape::Nothing)].prop_recursive(3, 12, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let default = prop::option::of(any_word().prop_map(|text| serde_json::Value::from(text).to_string()));
        let member = prop_oneof![
            4 => (any_word(), wire(), inner.clone(), default)
                .prop_map(|(name, wire, shape, default)| Member::Hashed { name, wire, shape, default }),
            1 => any_word().prop_map(|name| Member::Excluded { name }),
        ];
        let variant = (any_word(), wire(), prop::option::of(inner.clone())).prop_map(|(name, wire, shape)| Variant {
            name,
            wire,
            shape,
        });
        prop_oneof![
            boxed().prop_map(Shape::List),
            boxed().prop_map(Shape::Unordered),
            boxed().prop_map(Shape::Set),
            boxed().prop_map(Shape::Optional),
            (any_word(), boxed()).prop_map(|(key, value)| Shape::Map { key: key.into(), value }),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Shape::Tuple),
            (any::<bool>(), prop::collection::vec(member, 0..3))
                .prop_map(|(denies_unknown, members)| Shape::Object { denies_unknown, members }),
            (any::<bool>(), prop::collection::vec(variant, 0..3))
                .prop_map(|(denies_unknown, variants)| Shape::OneOf { denies_unknown, variants }),
        ]
    })
}

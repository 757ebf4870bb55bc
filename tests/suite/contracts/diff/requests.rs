//! Requests that a contract could get, of any kind that it describes.

use std::collections::HashMap;

use idem_core::Contract;
use idem_core::canonical::Shape;
use idem_core::canonical::shape::{Member, Variant, Wire};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Requests in serde's own spelling, which is the canonical one but for numbers.
pub(super) fn of(contract: &Contract) -> BoxedStrategy<Value> {
    let mut labels = HashMap::new();
    collect(contract.command(), &mut labels);
    value(contract.command(), &labels, 3)
}

fn value(shape: &Shape, labels: &HashMap<u32, Shape>, depth: u32) -> BoxedStrategy<Value> {
    let inside = |shape: &Shape| value(shape, labels, depth);
    match shape {
        Shape::Leaf { class, .. } => leaf(class),
        Shape::List(_) if depth == 0 => Just(json!([])).boxed(),
        Shape::List(inner) | Shape::Unordered(inner) | Shape::Set(inner) => {
            prop::collection::vec(inside(inner), 0..3).prop_map(Value::from).boxed()
        }
        Shape::Map { key, value } => {
            let keys = match key.strip_prefix("name(").and_then(|names| names.strip_suffix(')')) {
                Some(names) => prop::sample::select(names.split(',').map(str::to_owned).collect::<Vec<_>>()).boxed(),
                None if key == "integer" => (0..20u8).prop_map(|key| key.to_string()).boxed(),
                None => "[a-cA-C]{1,2}".boxed(),
            };
            prop::collection::btree_map(keys, inside(value), 0..3).prop_map(|map| json!(map)).boxed()
        }
        Shape::Optional(inner) => prop_oneof![Just(Value::Null), inside(inner)].boxed(),
        Shape::Tuple(elements) if elements.is_empty() => Just(Value::Null).boxed(),
        Shape::Tuple(elements) => elements.iter().map(inside).collect::<Vec<_>>().prop_map(Value::from).boxed(),
        Shape::Object { members, .. } => object(members, labels, depth),
        Shape::OneOf { variants, .. } => {
            let variant = |variant: &Variant| {
                let name = variant.name.clone();
                match (&variant.shape, variant.wire) {
                    (None, Some(Wire::AnyOther)) => "[a-d]".prop_map(Value::from).boxed(),
                    (None, Some(Wire::Untagged(_))) => Just(Value::Null).boxed(),
                    (None, _) => Just(Value::from(name)).boxed(),
                    (Some(shape), Some(Wire::Untagged(_))) => inside(shape),
                    (Some(shape), _) => inside(shape).prop_map(move |value| json!({ name.clone(): value })).boxed(),
                }
            };
            prop::strategy::Union::new(variants.iter().map(variant).collect::<Vec<_>>()).boxed()
        }
        Shape::Named { shape, .. } => inside(shape),
        Shape::Again(label) => value(&labels[label], labels, depth.saturating_sub(1)),
        other => panic!("no requests for {other:?}"),
    }
}

fn object(members: &[Member], labels: &HashMap<u32, Shape>, depth: u32) -> BoxedStrategy<Value> {
    let member = |member: &Member| match member {
        Member::Excluded { name } => {
            (Just((name.clone(), false)), prop::option::of("[a-b]".prop_map(Value::from)).boxed())
        }
        Member::Hashed { name, wire, shape, default } => {
            let given = match shape {
                Shape::Optional(_) if depth == 0 => Just(None).boxed(),
                Shape::Optional(_) => prop::option::of(value(shape, labels, depth)).boxed(),
                shape => value(shape, labels, depth).prop_map(Some).boxed(),
            };
            // The default itself, now and then: serde reads its canonical text, but for numbers.
            let default = default.as_deref().map(|text| plain(serde_json::from_str(text).expect("canonical JSON")));
            let given = match default {
                Some(default) => prop_oneof![given, Just(Some(default))].boxed(),
                None => given,
            };
            (Just((name.clone(), *wire == Some(Wire::Flattened))), given)
        }
        other => panic!("no requests for {other:?}"),
    };
    members
        .iter()
        .map(member)
        .collect::<Vec<_>>()
        .prop_map(|members| {
            let mut request = Map::new();
            for ((name, is_flattened), value) in members {
                match value {
                    Some(Value::Object(flattened)) if is_flattened => {
                        flattened.into_iter().for_each(|(name, value)| _ = request.entry(name).or_insert(value));
                    }
                    Some(value) if !is_flattened => _ = request.insert(name, value),
                    _ => {}
                }
            }
            Value::Object(request)
        })
        .boxed()
}

fn leaf(class: &str) -> BoxedStrategy<Value> {
    match class {
        "text" => "[ a-bA-B]{0,2}(e\u{301})?".prop_map(Value::from).boxed(),
        "integer" => (0..4u8).prop_map(Value::from).boxed(),
        "bool" => any::<bool>().prop_map(Value::from).boxed(),
        "decimal" => (0..2000i64, 0..4u32)
            .prop_map(|(digits, scale)| Value::from(rust_decimal::Decimal::new(digits, scale).to_string()))
            .boxed(),
        "json" => {
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[ab]?".prop_map(Value::from)].boxed()
        }
        "bytes" => prop::collection::vec(0..4u8, 0..3).prop_map(Value::from).boxed(),
        other => panic!("no requests for {other}"),
    }
}

/// An integer's canonical text as a number.
fn plain(default: Value) -> Value {
    let number = default.as_str().and_then(|text| text.parse::<u64>().ok());
    number.map_or(default, Value::from)
}

fn collect(shape: &Shape, labels: &mut HashMap<u32, Shape>) {
    match shape {
        Shape::Named { label, shape } => {
            labels.insert(*label, (**shape).clone());
            collect(shape, labels);
        }
        Shape::List(inner)
        | Shape::Unordered(inner)
        | Shape::Set(inner)
        | Shape::Optional(inner)
        | Shape::Map { value: inner, .. } => collect(inner, labels),
        Shape::Tuple(elements) => elements.iter().for_each(|element| collect(element, labels)),
        Shape::Object { members, .. } => members.iter().for_each(|member| {
            if let Member::Hashed { shape, .. } = member {
                collect(shape, labels);
            }
        }),
        Shape::OneOf { variants, .. } => {
            variants.iter().filter_map(|variant| variant.shape.as_ref()).for_each(|shape| collect(shape, labels));
        }
        _ => {}
    }
}

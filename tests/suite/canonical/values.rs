//! Numbers, lists and maps: different values never share a text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use idem_core::{Canonical, IdempotentCommand};
use proptest::prelude::*;

use super::{assert_all_differ, canonical, preimage};

#[test]
fn integers_above_2_53_stay_apart() {
    assert_all_differ(&[1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN].map(|n| canonical!(i64 = n)));
    assert_all_differ(&[u64::MAX, u64::MAX - 1].map(|n| canonical!(u64 = n)));
    assert_eq!(canonical!(i128 = i128::MIN), "\"-170141183460469231731687303715884105728\"");
    assert_eq!(canonical!(i8 = i8::MIN), "\"-128\"");
    let keys: BTreeMap<u64, u8> = [(1 << 53, 1), ((1 << 53) + 1, 1)].into();
    assert_eq!(canonical!(BTreeMap<u64, u8> = keys), r#"{"9007199254740992":"1","9007199254740993":"1"}"#);
}

#[test]
fn a_wider_integer_keeps_the_hash() {
    assert_eq!(preimage!(u8 = 200), preimage!(u128 = 200));
    assert_eq!(preimage!(i16 = -7), preimage!(isize = -7));
}

#[test]
fn the_borders_of_fields_and_elements_count() {
    let pair = |a: &str, b: &str| canonical!((String, String) = (a.into(), b.into()));
    assert_all_differ(&[pair("ab", "c"), pair("a", "bc"), pair("a|b", "c"), pair("a", "b|c"), pair("a\",\"b", "c")]);
    let list = |items: &[&str]| canonical!(Vec<String> = items.iter().map(|&item| item.into()).collect());
    assert_all_differ(&[list(&[]), list(&[""]), list(&["", ""]), list(&["a,b"]), list(&["a", "b"])]);
    assert_all_differ(&[preimage!(Option<String> = None), preimage!(Option<String> = Some(String::new()))]);

    #[derive(Canonical)]
    struct Nested {
        x: &'static str,
    }
    let values = [canonical!(Nested = Nested { x: "1" }), canonical!(&'static str = "x1")];
    assert_all_differ(&values);
    assert_all_differ(&[canonical!(bool = true), canonical!(&'static str = "true")]);
    // Within one field, whose type belongs to the contract, an integer and its digits are one text.
    assert_eq!(canonical!(u8 = 1), canonical!(&'static str = "1"));
}

#[test]
fn lists_keep_their_order() {
    let list = |items: [&'static str; 2]| canonical!(Vec<&'static str> = items.into());
    assert_ne!(list(["a", "b"]), list(["b", "a"]));
}

#[test]
fn bytes_are_hex_however_they_are_held() {
    assert_eq!(canonical!(Box<[u8]> = Box::new([1, 2])), "\"0102\"");
    assert_eq!(canonical!(Cow<'static, [u8]> = Cow::Borrowed(&[1, 2])), "\"0102\"");
    assert_eq!(canonical!(Vec<[u8; 2]> = vec![[1, 2], [3, 4]]), r#"["0102","0304"]"#);
    assert_eq!(canonical!(Option<Vec<u8>> = Some(vec![])), "\"\"");
    assert_eq!(canonical!(Vec<i8> = vec![-1]), r#"["-1"]"#);
    assert_eq!(canonical!(Vec<u8> = vec![0xab; 100]), format!("\"{}\"", "ab".repeat(100)));
}

#[test]
fn owned_and_borrowed_values_are_one() {
    let owned = preimage!(String = "a".into());
    assert_eq!(preimage!(Cow<'static, str> = "a".into()), owned);
    assert_eq!(preimage!(Rc<str> = "a".into()), owned);
    assert_eq!(preimage!(Arc<String> = Arc::new("a".into())), owned);
    assert_eq!(preimage!(&'static &'static str = &"a"), owned);
    assert_eq!(preimage!(char = 'a'), owned);
    assert_eq!(preimage!(Box<Option<Rc<str>>> = Box::new(Some("a".into()))), owned);
}

#[test]
fn none_in_a_list_is_not_a_missing_element() {
    let list = |items: &[Option<u8>]| canonical!(Vec<Option<u8>> = items.to_vec());
    assert_all_differ(&[list(&[]), list(&[None]), list(&[None, None]), list(&[Some(0)])]);
    let pointers: Vec<Option<Box<Option<u8>>>> = vec![None, Some(Box::new(None)), Some(Box::new(Some(1)))];
    assert_eq!(canonical!(Vec<Option<Box<Option<u8>>>> = pointers), r#"[null,[null],["1"]]"#);
}

#[test]
fn maps_are_in_utf_16_order_whatever_their_own_order_is() {
    type Numbers = BTreeMap<i32, bool>;
    let numbers = canonical!(Numbers = [-10, -9, 1, 2, 10].map(|n| (n, true)).into());
    assert_eq!(numbers, r#"{"-10":true,"-9":true,"1":true,"10":true,"2":true}"#);
    assert_eq!(canonical!(Numbers = Numbers::new()), "{}");
    let borders = ['\u{10ffff}', '\u{ffff}', '\u{f000}', '\u{efff}', '\u{e000}', '\u{10000}', '\u{d7ff}', '\u{fb33}'];
    let mut sorted = borders.map(String::from);
    sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    let map = canonical!(BTreeMap<char, u8> = borders.map(|c| (c, 0)).into());
    assert_eq!(map, format!("{{{}}}", sorted.map(|c| format!("\"{c}\":\"0\"")).join(",")));
}

#[derive(Canonical, Clone, Debug, PartialEq)]
enum Tree {
    Leaf,
    Number(u16),
    Text(String),
    List(Vec<Tree>),
    Pair(Box<Tree>, Option<Box<Tree>>),
    Object { a: Option<Box<Tree>>, b: Option<Option<bool>> },
    Map(BTreeMap<String, Tree>),
    Bytes(Vec<u8>),
}

fn trees() -> impl Strategy<Value = Tree> {
    let word = || prop::string::string_regex("[ab\"\\\\,:{}\\[\\]]{0,3}").unwrap();
    let leaf = prop_oneof![
        Just(Tree::Leaf),
        any::<u16>().prop_map(Tree::Number),
        word().prop_map(Tree::Text),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(Tree::Bytes),
    ];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Tree::List),
            (boxed(), prop::option::of(boxed())).prop_map(|(a, b)| Tree::Pair(a, b)),
            (prop::option::of(boxed()), any::<Option<Option<bool>>>()).prop_map(|(a, b)| Tree::Object { a, b }),
            prop::collection::btree_map(word(), inner.clone(), 0..3).prop_map(Tree::Map),
        ]
    })
}

#[derive(IdempotentCommand)]
#[idem(operation = "grow", version = 1)]
struct Grow<'a> {
    tree: &'a Tree,
}

proptest! {
    #[test]
    fn different_values_never_share_a_preimage(a in trees(), b in trees()) {
        let [one, other] = [Grow { tree: &a }, Grow { tree: &b }];
        prop_assert_eq!(one.preimage() == other.preimage(), a == b);
        prop_assert_eq!(one.command_hash() == other.command_hash(), a == b);
    }

    #[test]
    fn a_preimage_is_one_json_text_with_its_members_in_order(tree in trees()) {
        let preimage = Grow { tree: &tree }.preimage();
        let value: serde_json::Value = serde_json::from_str(&preimage).unwrap();
        prop_assert_eq!(value.to_string(), preimage, "names here are ASCII, so serde_json's sorted maps agree");
    }
}

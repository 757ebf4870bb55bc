//! Types of every kind, also those that come out of macros and `cfg`.

use std::borrow::Cow;
use std::marker::PhantomData;

use idem_core::{Canonical, IdempotentCommand};

/// A struct as a macro of the user's writes it: every part passed on, in the invisible groups that this brings.
macro_rules! command {
    ($(#[$meta:meta])* $vis:vis $name:ident, $operation:expr, $version:literal, $scale:expr, $amount:ty, $default:expr, $mark:ty) => {
        #[derive(IdempotentCommand)]
        $(#[$meta])*
        #[idem(operation = $operation, version = $version)]
        $vis struct $name {
            #[idem(decimal(scale = $scale), default = $default)]
            amount: $amount,
            #[allow(dead_code)]
            mark: $mark,
        }
    };
}

command!(
    #[idem(rename_all = "UPPERCASE")]
    Made,
    "made",
    3,
    2,
    Option<rust_decimal::Decimal>,
    -1.50,
    PhantomData<fn()>
);

#[test]
fn attribute_values_from_macro_rules_are_read_through_their_groups() {
    let made = |amount: Option<&str>| Made { amount: amount.map(|text| text.parse().unwrap()), mark: PhantomData };
    assert_eq!(made(Some("-1.5")).preimage(), r#"["idem/1","made",3,{}]"#);
    assert_eq!(made(None).command_hash(), made(Some("-1.500")).command_hash());
    assert_eq!(made(Some("1.5")).preimage(), r#"["idem/1","made",3,{"AMOUNT":"1.50"}]"#);
    assert!(!Made::contract().to_string().contains("mark"), "{}", Made::contract());
}

#[test]
fn a_negative_default_may_be_given_by_its_amount() {
    macro_rules! below {
        ($amount:literal, $other:expr) => {
            #[derive(IdempotentCommand)]
            #[idem(operation = "below", version = 1)]
            struct Below {
                #[idem(decimal(scale = 2), default = -$amount)]
                amount: rust_decimal::Decimal,
                #[idem(decimal(scale = 2), default = -$other)]
                other: rust_decimal::Decimal,
                #[idem(default = -$amount)]
                whole: i64,
            }
        };
    }
    below!(3, (1.5));
    let below = Below { amount: (-3).into(), other: "-1.50".parse().unwrap(), whole: -3 };
    assert_eq!(below.preimage(), r#"["idem/1","below",1,{}]"#);
    assert_eq!(Below { amount: 3.into(), ..below }.preimage(), r#"["idem/1","below",1,{"amount":"3.00"}]"#);
}

#[test]
fn words_and_paths_from_macro_rules() {
    macro_rules! with {
        ($word:ident, $name:literal, $krate:path, $old:ty) => {
            #[derive(IdempotentCommand)]
            #[idem(operation = "words", version = 2, crate = $krate, previous = $old)]
            struct Words {
                #[idem($word, rename = $name)]
                field: &'static str,
            }
        };
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "words", version = 1)]
    struct Old {
        f: &'static str,
    }
    with!(uppercase, "f", ::idem_core, Old);
    impl From<&Words> for Old {
        fn from(words: &Words) -> Self {
            Self { f: words.field }
        }
    }
    impl From<Old> for Words {
        fn from(old: Old) -> Self {
            Self { field: old.f }
        }
    }
    let words = Words { field: "a" };
    assert_eq!(words.preimage(), r#"["idem/1","words",2,{"f":"A"}]"#);
    assert_eq!(words.preimage_at(1).unwrap(), r#"["idem/1","words",1,{"f":"a"}]"#);
}

#[test]
fn fields_that_cfg_takes_out_are_not_there() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "cfg", version = 1)]
    struct Configured {
        here: u8,
        #[cfg(any())]
        gone: DoesNotExist,
        #[cfg_attr(all(), idem(exclude))]
        #[allow(dead_code)]
        excluded: fn(),
        #[cfg_attr(any(), idem(exclude))]
        hashed: u8,
    }
    #[derive(Canonical)]
    #[allow(dead_code)]
    enum Either {
        One(#[cfg(any())] DoesNotExist, u8),
        #[cfg(any())]
        Other(DoesNotExist),
    }
    let configured = Configured { here: 1, excluded: || {}, hashed: 2 };
    assert_eq!(configured.preimage(), r#"["idem/1","cfg",1,{"hashed":"2","here":"1"}]"#);
    assert_eq!(crate::canonical::canonical!(Either = Either::One(3)), r#"{"One":"3"}"#);
}

#[test]
fn borrowed_and_owned_text_are_one_command() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "say", version = 1)]
    struct Borrowed<'a> {
        a: &'a str,
        b: Cow<'a, str>,
        c: Option<&'a [u8]>,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "say", version = 1)]
    struct Owned {
        a: String,
        b: Box<str>,
        c: Option<Vec<u8>>,
    }
    let text = String::from("e\u{301}");
    let borrowed = Borrowed { a: &text, b: Cow::Borrowed(&text), c: Some(text.as_bytes()) };
    let owned = Owned { a: text.clone(), b: "\u{e9}".into(), c: Some(text.clone().into()) };
    assert_eq!(borrowed.command_hash(), owned.command_hash());
}

#[test]
fn only_what_is_hashed_needs_a_bound() {
    struct Opaque;
    trait Bank {
        type Account;
    }
    struct Ours;
    impl Bank for Ours {
        type Account = String;
    }

    #[derive(Canonical)]
    struct Row<T, U: ?Sized>(T, #[idem(exclude)] PhantomData<U>, <Vec<T> as IntoIterator>::Item);

    #[derive(IdempotentCommand)]
    #[idem(operation = "generic", version = 1)]
    struct Generic<'a, B: Bank, X, const N: usize>
    where
        B::Account: Clone,
        X: Sized,
    {
        account: &'a B::Account,
        other: <B as Bank>::Account,
        row: Row<u8, [Opaque]>,
        codes: [u16; N],
        #[idem(exclude)]
        _opaque: X,
        _mark: PhantomData<(B, X)>,
    }

    /// What holds for a bank whose accounts are hashed holds for the command: no bound on `X`, none on `B` itself.
    fn preimage<B: Bank, X>(command: &Generic<'_, B, X, 1>) -> String
    where
        B::Account: Canonical + Clone,
    {
        command.preimage()
    }

    let account = String::from("a");
    let generic: Generic<'_, Ours, Opaque, 1> = Generic {
        account: &account,
        other: "o".into(),
        row: Row(1, PhantomData, 2),
        codes: [3],
        _opaque: Opaque,
        _mark: PhantomData,
    };
    assert_eq!(
        preimage(&generic),
        r#"["idem/1","generic",1,{"account":"a","codes":["3"],"other":"o","row":["1","2"]}]"#
    );
}

/// Card is hashed by what belongs to it, and is nothing that could be hashed.
trait Kind {
    type Id;
}
struct Card;
impl Kind for Card {
    type Id = u64;
}

#[test]
fn a_generic_type_may_hold_itself_without_a_bound_on_what_it_does_not_hash() {
    #[derive(Canonical)]
    struct Node<K: Kind> {
        id: K::Id,
        next: Option<Box<Node<K>>>,
        pair: Vec<(u8, Self)>,
    }
    #[derive(Canonical)]
    struct Chain<X> {
        v: u8,
        next: Option<Box<Chain<X>>>,
        mark: PhantomData<X>,
    }
    #[derive(Canonical)]
    struct Tree<T, X>(Vec<(T, Tree<T, X>)>, PhantomData<X>);

    let node = |id, next| Node::<Card> { id, next, pair: vec![] };
    let two = node(1, Some(Box::new(node(2, None))));
    let text = crate::canonical::canonical!(Node<Card> = two);
    assert_eq!(text, r#"{"id":"1","next":{"id":"2","pair":[]},"pair":[]}"#);
    let chain = |v, next| Chain::<Card> { v, next, mark: PhantomData };
    let text = crate::canonical::canonical!(Chain<Card> = chain(1, Some(Box::new(chain(2, None)))));
    assert_eq!(text, r#"{"next":{"v":"2"},"v":"1"}"#);
    let tree = Tree::<u8, Card>(vec![(1, Tree(vec![], PhantomData))], PhantomData);
    assert_eq!(crate::canonical::canonical!(Tree<u8, Card> = tree), r#"[["1",[]]]"#);
}

#[test]
fn generic_types_may_hold_each_other() {
    #[derive(Canonical)]
    struct Order<T> {
        id: T,
        parts: Option<Box<Parts<T>>>,
    }
    #[derive(Canonical)]
    struct Parts<T> {
        orders: Vec<Order<T>>,
    }
    type Kids<T> = Vec<Node<T>>;
    #[derive(Canonical)]
    struct Node<T> {
        #[idem(default = [])]
        kids: Kids<T>,
        v: T,
    }
    #[derive(Canonical)]
    struct Forest<T>(Vec<Tree<T>>);
    #[derive(Canonical)]
    struct Tree<T> {
        names: Vec<T>,
        forest: Forest<T>,
    }
    /// Neither hashes `K` itself, so that each would ask the other what it needs of it: said instead.
    #[derive(Canonical)]
    #[idem(bound = "K: Kind, K::Id: Canonical")]
    struct Left<K: Kind> {
        id: K::Id,
        right: Option<Box<Right<K>>>,
    }
    #[derive(Canonical)]
    struct Right<K: Kind> {
        id: K::Id,
        left: Option<Box<Left<K>>>,
    }
    #[derive(Canonical)]
    #[idem(bound = "")]
    struct Row(Option<Box<Cell>>);
    #[derive(Canonical)]
    struct Cell(Vec<Row>);

    let order = Order { id: 1, parts: Some(Box::new(Parts { orders: vec![Order { id: 2, parts: None }] })) };
    let text = crate::canonical::canonical!(Order<u8> = order);
    assert_eq!(text, r#"{"id":"1","parts":{"orders":[{"id":"2"}]}}"#);
    let node = Node { v: "a", kids: vec![Node { v: "b", kids: vec![] }] };
    assert_eq!(crate::canonical::canonical!(Node<&'static str> = node), r#"{"kids":[{"v":"b"}],"v":"a"}"#);
    let tree = Tree { names: vec!["a"], forest: Forest(vec![]) };
    assert_eq!(crate::canonical::canonical!(Tree<&'static str> = tree), r#"{"forest":[],"names":["a"]}"#);
    let left = Left::<Card> { id: 1, right: Some(Box::new(Right { id: 2, left: None })) };
    assert_eq!(crate::canonical::canonical!(Left<Card> = left), r#"{"id":"1","right":{"id":"2"}}"#);
    assert_eq!(crate::canonical::canonical!(Row = Row(Some(Box::new(Cell(vec![Row(None)]))))), "[null]");
}

/// What a type that is not known here asks of its parameters is for that type to say.
#[test]
fn a_type_with_parameters_is_bounded_as_a_whole() {
    #[derive(Canonical)]
    struct Item<K: Kind> {
        id: K::Id,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "page", version = 1)]
    struct Page<K: Kind, T, U: Clone + 'static> {
        items: Vec<Item<K>>,
        #[idem(unordered, trim)]
        names: Option<Vec<T>>,
        by_name: std::collections::BTreeMap<T, U>,
        #[idem(default = "web")]
        channel: Option<T>,
        #[idem(default = [])]
        list: Option<Vec<U>>,
        #[idem(digest)]
        blob: Vec<U>,
        rows: Box<[(u8, K::Id)]>,
        cow: Cow<'static, [U]>,
    }
    let page = Page::<Card, &'static str, u8> {
        items: vec![Item { id: 1 }],
        names: Some(vec![" b", "a "]),
        by_name: [("k", 1)].into(),
        channel: Some("web"),
        list: Some(vec![]),
        blob: vec![],
        rows: Box::new([(1, 2)]),
        cow: Cow::Borrowed(&[]),
    };
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(
        page.preimage(),
        format!(
            r#"["idem/1","page",1,{{"blob":"{digest}","by_name":{{"k":"1"}},"cow":"","items":[{{"id":"1"}}],"names":["a","b"],"rows":[["1","2"]]}}]"#
        )
    );
}

/// What is called like the standard library's mark, and carries something.
mod another_phantom {
    #[derive(idem_core::Canonical)]
    pub(super) struct PhantomData(pub(super) u8);
}

#[test]
fn a_type_called_phantom_data_is_hashed_like_any_other() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Ghost {
        seen: bool,
        body: another_phantom::PhantomData,
    }
    let ghost = Ghost { seen: true, body: another_phantom::PhantomData(7) };
    assert_eq!(ghost.preimage(), r#"["idem/1","t",1,{"body":"7","seen":true}]"#);
}

#[test]
fn marks_in_rows_do_not_count() {
    #[derive(Canonical)]
    struct Id<T>(u64, PhantomData<T>);
    #[derive(Canonical)]
    enum Either<T> {
        One(u8, PhantomData<T>),
        Two(PhantomData<T>, u8, u8),
    }
    let ids = vec![Id::<Card>(1, PhantomData)];
    assert_eq!(crate::canonical::canonical!(Vec<Id<Card>> = ids), r#"["1"]"#);
    let by_id = [(Id::<Card>(1, PhantomData), 2)];
    assert_eq!(crate::canonical::canonical!(std::collections::BTreeMap<Id<Card>, u8> = by_id.into()), r#"{"1":"2"}"#);
    let either = vec![Either::<Card>::One(1, PhantomData), Either::Two(PhantomData, 2, 3)];
    let text = crate::canonical::canonical!(Vec<Either<Card>> = either);
    assert_eq!(text, r#"[{"One":"1"},{"Two":["2","3"]}]"#);

    impl PartialEq for Id<Card> {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Id<Card> {}
    impl PartialOrd for Id<Card> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Id<Card> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.0.cmp(&other.0)
        }
    }
}

#[test]
fn a_field_without_a_size_is_hashed_behind_a_pointer() {
    #[derive(Canonical)]
    struct Tail<T: ?Sized> {
        n: u8,
        tail: T,
    }
    let tail: Box<Tail<[u8]>> = Box::new(Tail { n: 1, tail: [1, 2] });
    assert_eq!(crate::canonical::canonical!(Box<Tail<[u8]>> = tail), r#"{"n":"1","tail":"0102"}"#);
}

/// The other shapes of one name: what is `()` and `{}` in Rust is the same in a contract, and a row of one is what it
/// holds.
#[test]
fn structs_and_variants_without_fields() {
    macro_rules! bodies {
        ($($name:ident $body:tt)*) => {
            vec![$({
                #[derive(IdempotentCommand)]
                #[idem(operation = "empty", version = 1, allow_empty)]
                struct $name $body
                $name::contract().to_string().split_once("command: ").unwrap().1.to_owned()
            }),*]
        };
    }
    assert_eq!(
        bodies!(A {} B {} C { #[idem(exclude)] _x: fn() }),
        ["object\n", "object\n", "object\n  _x: not hashed\n"]
    );

    #[derive(Canonical)]
    enum Either {
        Unit,
        Row(),
        Object {},
        Excluded {
            #[idem(exclude)]
            _x: fn(),
        },
    }
    let text = |either| crate::canonical::canonical!(Either = either);
    let texts = [Either::Unit, Either::Row(), Either::Object {}, Either::Excluded { _x: || {} }].map(text);
    assert_eq!(texts, [r#""Unit""#, r#"{"Row":[]}"#, r#"{"Object":{}}"#, r#"{"Excluded":{}}"#]);
}

//! What generic types ask of their parameters: that what is hashed has a canonical form, and no more.

use std::borrow::Cow;
use std::marker::PhantomData;

use idem_core::{Canonical, IdempotentCommand};

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

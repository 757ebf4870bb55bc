//! Samples that show too little.

use std::collections::{BTreeMap, BTreeSet};

use idem_core::{Canonical, IdempotentCommand};

use super::folder::{Folder, Insta};

#[derive(IdempotentCommand)]
#[idem(operation = "blind", version = 1)]
struct Blind {
    amount: u32,
    note: Option<Option<String>>,
    #[idem(default = "web")]
    channel: Option<String>,
    #[idem(default = 1)]
    quantity: u8,
    lines: Vec<Line>,
    tags: BTreeMap<String, Option<bool>>,
    flags: BTreeSet<u16>,
    pair: (Option<u8>, Tree),
    #[idem(default = Method::Cash)]
    method: Method,
    #[idem(exclude)]
    #[expect(dead_code)]
    trace: Option<String>,
}

#[derive(Canonical)]
struct Line {
    sku: Option<String>,
}

#[derive(Canonical)]
struct Tree {
    inside: Vec<Tree>,
}

#[derive(Canonical)]
#[idem(rename_all = "snake_case")]
enum Method {
    Cash,
    Card(Scheme),
    Bank { iban: Option<String> },
}

#[derive(Canonical)]
#[idem(rename_all = "snake_case")]
enum Scheme {
    Visa,
    Other(Option<u8>),
}

fn least() -> Blind {
    Blind {
        amount: 1,
        note: None,
        channel: None,
        quantity: 1,
        lines: vec![],
        tags: BTreeMap::new(),
        flags: BTreeSet::new(),
        pair: (None, Tree { inside: vec![] }),
        method: Method::Cash,
        trace: None,
    }
}

fn uncovered(samples: &[&Blind]) -> Vec<String> {
    let preimages: Vec<_> = samples.iter().map(|sample| sample.preimage()).collect();
    Blind::contract().uncovered(preimages.iter().map(String::as_str))
}

#[test]
fn what_no_sample_shows_is_listed() {
    assert_eq!(
        uncovered(&[&least()]),
        [
            "channel: given, other than its default",
            "flags: something in it",
            "lines: something in it",
            "lines[].sku: given",
            "lines[].sku: left out",
            "method: other than its default",
            "method: the variant `bank`",
            "method.bank.iban: given",
            "method.bank.iban: left out",
            "method: the variant `card`",
            "method.card: the variant `other`",
            "method.card.other: a value that is not null",
            "method.card.other: null",
            "method.card: the variant `visa`",
            "note: given",
            "note: a value that is not null",
            "note: null",
            "pair.0: a value that is not null",
            "pair.1.inside: something in it",
            "quantity: other than its default",
            "tags: something in it",
            "tags[]: a value that is not null",
            "tags[]: null",
        ]
    );
}

#[test]
fn samples_together_show_everything() {
    let method = |method| Blind { method, ..least() };
    let line = |sku: Option<&str>| Line { sku: sku.map(str::to_owned) };
    let full = Blind {
        note: Some(Some("n".into())),
        channel: Some("app".into()),
        quantity: 2,
        lines: vec![line(Some("s")), line(None)],
        tags: [("a".into(), None), ("b".into(), Some(true))].into(),
        flags: [1].into(),
        pair: (Some(1), Tree { inside: vec![Tree { inside: vec![] }] }),
        ..least()
    };
    let samples = [
        full,
        Blind { note: Some(None), ..least() },
        method(Method::Card(Scheme::Visa)),
        method(Method::Card(Scheme::Other(None))),
        method(Method::Card(Scheme::Other(Some(1)))),
        method(Method::Bank { iban: None }),
        method(Method::Bank { iban: Some("NL91".into()) }),
    ];
    assert_eq!(uncovered(&samples.iter().collect::<Vec<_>>()), [""; 0]);
    // Without any one of them something is not shown.
    for left_out in 0..samples.len() {
        let others: Vec<_> = samples.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, s)| s).collect();
        assert_ne!(uncovered(&others), [""; 0], "sample {left_out} shows nothing of its own");
    }
}

#[test]
fn a_value_equal_to_its_default_shows_nothing_but_the_default() {
    let given = Blind { channel: Some("web".into()), quantity: 1, ..least() };
    assert_eq!(uncovered(&[&given]), uncovered(&[&least()]));
}

#[test]
fn a_newtype_of_an_option_is_one_even_where_it_holds_itself() {
    #[derive(Canonical)]
    struct Chain(Option<Box<Link>>);
    #[derive(Canonical)]
    struct Link {
        next: Chain,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "chain", version = 1)]
    struct Chained {
        first: Chain,
    }
    let last = || Link { next: Chain(None) };
    let covered = |first| Chained::contract().uncovered([&*Chained { first }.preimage()]);
    assert_eq!(covered(Chain(Some(Box::new(last())))), [""; 0]);
    assert_eq!(covered(Chain(None)), ["first: given"]);
}

#[test]
fn each_name_of_an_enum_that_is_a_maps_key_has_to_be_shown_once() {
    #[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
    #[idem(rename_all = "snake_case")]
    enum Account {
        Main,
        #[idem(rename = "gr\u{fc}n, blau")]
        Second,
        #[idem(rename = "7")]
        Seventh,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "book", version = 1)]
    struct Book {
        entries: BTreeMap<Account, u8>,
        fees: BTreeMap<Account, u8>,
    }
    let uncovered = |entries: Vec<(Account, u8)>| {
        let book = Book { entries: entries.into_iter().collect(), fees: [(Account::Main, 1)].into() };
        Book::contract().uncovered([&*book.preimage()])
    };
    assert_eq!(uncovered(vec![(Account::Second, 1), (Account::Seventh, 2)]), [""; 0]);
    assert_eq!(uncovered(vec![(Account::Second, 1)]), ["entries: the key `7`"]);
    assert_eq!(uncovered(vec![(Account::Seventh, 1)]), ["entries: the key `\"gr\\u00fcn\\u002c\\u0020blau\"`"]);
}

#[test]
fn blind_samples_fail_the_test_with_the_list() {
    let folder = Folder::new();
    folder.assert(Insta::Accepts, &[("least", &least())]).unwrap_err();
    for insta in Insta::ALL {
        let message = folder.assert(insta, &[("least", &least())]).unwrap_err();
        assert!(message.starts_with("no sample of `blind` shows\n  channel: given, other"), "{message}");
        assert!(message.contains("\n  tags[]: null\nWhat no sample shows"), "{message}");
    }
}

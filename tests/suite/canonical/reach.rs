//! Rules reach a value through whatever holds it, rules of the user's own too; and keys of maps of every kind.
#![allow(unused_parens)] // a type in brackets is one of the cases

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use idem_core::canonical::{Elementwise, Shape, Shapes};
use idem_core::{Canonical, IdempotentCommand, Sink, contract};
use rust_decimal::Decimal;

use super::{assert_all_differ, canonical};

/// A type of another crate, as far as the rule is concerned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Money {
    cents: i64,
}

mod rules {
    pub(super) enum Cents {}
    pub(super) struct Places<const N: u32>;
}

impl Elementwise for rules::Cents {}

impl Canonical<rules::Cents> for Money {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        self.cents.write(sink);
    }

    fn shape(_: &mut Shapes) -> Shape {
        Shape::leaf("integer").with_rule("cents")
    }
}

impl<const N: u32> Elementwise for rules::Places<N> {}

impl<const N: u32> Canonical<rules::Places<N>> for Money {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        Canonical::<idem_core::canonical::decimal<N>>::write(&Decimal::new(self.cents, 2), sink);
    }

    fn shape(_: &mut Shapes) -> Shape {
        Shape::leaf("decimal").with_rule(format!("at least {N}"))
    }
}

#[test]
fn a_rule_of_ones_own_reaches_through_what_holds_the_value() {
    type Alias = Option<Vec<Box<Money>>>;
    let money = |cents| Money { cents };
    macro_rules! cents {
        ($ty:ty, $value:expr) => {
            canonical!(
                #[idem(with = "rules::Cents")]
                $ty = $value
            )
        };
    }
    assert_eq!(cents!(Money, money(5)), r#""5""#);
    assert_eq!(cents!((Money), money(5)), r#""5""#);
    assert_eq!(cents!(Alias, Some(vec![Box::new(money(5))])), r#"["5"]"#);
    assert_eq!(cents!(Alias, None), "");
    assert_eq!(cents!(&'static Money, &Money { cents: 7 }), r#""7""#);
    assert_eq!(cents!(Rc<Money>, Rc::new(money(5))), r#""5""#);
    assert_eq!(cents!(Cow<'static, Money>, Cow::Owned(money(5))), r#""5""#);
    assert_eq!(cents!(BTreeMap<u8, Money>, [(1, money(5))].into()), r#"{"1":"5"}"#);
    assert_eq!(cents!(BTreeSet<Money>, [9, 10].map(money).into()), r#"["10","9"]"#);
    let bag = canonical!(#[idem(with = rules::Cents, unordered)] Vec<Money> = [9, 10].map(money).into());
    assert_eq!(bag, r#"["10","9"]"#);
    let places = canonical!(#[idem(with = "rules::Places<3>")] Option<Money> = Some(money(5)));
    assert_eq!(places, r#""0.050""#);

    #[derive(Canonical)]
    struct Held(Option<Money>);
    assert_eq!(cents!(Held, Held(Some(money(5)))), r#""5""#);
    assert_eq!(cents!(Held, Held(None)), "");
    #[derive(Canonical)]
    struct Own(#[idem(with = "rules::Cents")] Money);
    assert_eq!(canonical!(Own = Own(money(5))), r#""5""#);
    #[derive(Canonical)]
    enum Pay {
        Now(#[idem(with = "rules::Cents")] Money),
    }
    assert_eq!(canonical!(Pay = Pay::Now(money(5))), r#"{"Now":"5"}"#);
}

#[test]
fn the_contract_names_a_rule_of_ones_own() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct Pay {
        #[idem(with = "rules::Cents")]
        amounts: Vec<Money>,
        #[idem(with = "rules::Places<3>")]
        fee: Option<Money>,
    }
    let text = Pay::contract().to_string();
    assert!(text.ends_with("amounts: list of integer(cents)\n  fee?: decimal(at least 3)\n"), "{text}");
    assert_eq!(contract::parse(&text).unwrap(), Pay::contract());
    assert_eq!(Pay { amounts: vec![], fee: None }.preimage(), r#"["idem/1","pay",1,{"amounts":[]}]"#);
}

/// Each rule through each holder gives what it gives on the value itself.
#[test]
fn every_rule_reaches_through_every_holder() {
    macro_rules! reaches {
        ($([$($rule:tt)*] $ty:ty = $value:expr => $text:literal;)*) => {$({
            type Inner = $ty;
            type Alias = Option<Box<Inner>>;
            #[derive(Canonical)]
            struct Newtype(Inner);
            #[derive(Canonical)]
            struct Twice<T>(Vec<T>);
            let value = || -> Inner { $value };
            let list = concat!("[", $text, "]");
            assert_eq!(canonical!(#[idem($($rule)*)] $ty = value()), $text);
            assert_eq!(canonical!(#[idem($($rule)*)] ($ty) = value()), $text);
            assert_eq!(canonical!(#[idem($($rule)*)] Alias = Some(Box::new(value()))), $text);
            assert_eq!(canonical!(#[idem($($rule)*)] Option<Newtype> = Some(Newtype(value()))), $text);
            assert_eq!(canonical!(#[idem($($rule)*)] Arc<Rc<Inner>> = Arc::new(Rc::new(value()))), $text);
            assert_eq!(canonical!(#[idem($($rule)*)] Vec<Alias> = vec![Some(Box::new(value()))]), list);
            assert_eq!(canonical!(#[idem($($rule)*)] [Inner; 1] = [value()]), list);
            assert_eq!(canonical!(#[idem($($rule)*)] VecDeque<Inner> = [value()].into()), list);
            assert_eq!(canonical!(#[idem($($rule)*)] Twice<Newtype> = Twice(vec![Newtype(value())])), list);
            assert_eq!(
                canonical!(#[idem($($rule)*)] HashMap<char, Inner> = [('k', value())].into()),
                concat!("{\"k\":", $text, "}")
            );
        })*};
    }
    reaches! {
        [uppercase] &'static str = "ab" => "\"AB\"";
        [lowercase] String = "AB".into() => "\"ab\"";
        [trim] Box<str> = " a ".into() => "\"a\"";
        [trim, uppercase] Rc<str> = " a ".into() => "\"A\"";
        [verbatim] Cow<'static, str> = "e\u{301}".into() => "\"e\u{301}\"";
        [decimal(scale = 2)] Decimal = Decimal::ONE => "\"1.00\"";
        [decimal(scale = 0, round = "half_even")] Decimal = Decimal::new(25, 1) => "\"2\"";
        [float] f64 = 1.5 => "\"1.5\"";
        [timestamp(precision = "s")] std::time::SystemTime =
            std::time::UNIX_EPOCH + std::time::Duration::from_millis(1999) => "\"1970-01-01T00:00:01.000000000Z\"";
    }
}

#[test]
fn digest_and_unordered_reach_through_what_holds_the_whole() {
    #[derive(Canonical)]
    struct Blob(Box<[u8]>);
    #[derive(Canonical)]
    struct Tags(Vec<u8>);
    let digest = canonical!(#[idem(digest)] Option<Rc<Blob>> = Some(Rc::new(Blob([].into()))));
    assert!(digest.starts_with("\"sha256:e3b0c442"), "{digest}");
    let tags = canonical!(#[idem(unordered)] Option<Arc<Tags>> = Some(Arc::new(Tags(vec![2, 1]))));
    assert_eq!(tags, r#"["1","2"]"#);

    type Bytes = Option<Vec<u8>>;
    let [sorted, digest] = [r#"["1","2"]"#, "\"sha256:e3b0c442"];
    assert_eq!(
        canonical!(
            #[idem(unordered)]
            Bytes = Some(vec![2, 1])
        ),
        sorted
    );
    assert_eq!(canonical!(#[idem(unordered)] (Option<(Vec<u8>)>) = Some(vec![2, 1])), sorted);
    assert!(
        canonical!(
            #[idem(digest)]
            Bytes = Some(vec![])
        )
        .starts_with(digest)
    );
    assert!(canonical!(#[idem(digest)] (Option<(Vec<u8>)>) = Some(vec![])).starts_with(digest));
}

#[test]
fn a_digest_is_of_each_blob_whatever_holds_them() {
    let empty = "\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";
    let list = format!("[{empty}]");
    assert_eq!(canonical!(#[idem(digest)] Vec<Vec<u8>> = vec![vec![]]), list);
    assert_eq!(canonical!(#[idem(digest)] Option<Vec<Box<[u8]>>> = Some(vec![[].into()])), list);
    assert_eq!(canonical!(#[idem(digest)] &'static [[u8; 0]] = &[[]]), list);
    assert_eq!(canonical!(#[idem(digest)] [Vec<u8>; 1] = [vec![]]), list);
    assert_eq!(canonical!(#[idem(digest)] VecDeque<&'static [u8]> = [&[][..]].into()), list);
    assert_eq!(canonical!(#[idem(digest)] BTreeSet<Vec<u8>> = [vec![]].into()), list);
    assert_eq!(canonical!(#[idem(digest)] HashMap<u8, Vec<u8>> = [(1, vec![])].into()), format!("{{\"1\":{empty}}}"));
    let map = canonical!(#[idem(digest)] BTreeMap<u8, Vec<Option<Vec<u8>>>> = [(1, vec![None, Some(vec![])])].into());
    assert_eq!(map, format!("{{\"1\":[null,{empty}]}}"));
    #[derive(Canonical)]
    struct Attachment(Vec<u8>);
    assert_eq!(canonical!(#[idem(digest, default = [])] Vec<Attachment> = vec![Attachment(vec![])]), list);
    assert_eq!(canonical!(#[idem(digest, default = [])] Vec<Attachment> = vec![]), "");

    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Send {
        #[idem(digest)]
        attachments: Vec<Attachment>,
    }
    assert_eq!(Send { attachments: vec![] }.preimage(), r#"["idem/1","t",1,{"attachments":[]}]"#);
    let text = Send::contract().to_string();
    assert!(text.ends_with("attachments: list of bytes(digest)\n"), "{text}");
}

#[test]
fn unordered_is_for_the_first_list_it_meets() {
    let nested = canonical!(#[idem(unordered)] Vec<Vec<u16>> = vec![vec![2, 1], vec![1, 2]]);
    assert_eq!(nested, r#"[["1","2"],["2","1"]]"#);
    let map = canonical!(#[idem(unordered)] BTreeMap<u8, Option<Vec<u16>>> = [(1, Some(vec![2, 1])), (2, None)].into());
    assert_eq!(map, r#"{"1":["1","2"],"2":null}"#);
    let map = canonical!(#[idem(unordered, uppercase)] HashMap<u8, [&'static str; 2]> = [(1, ["b", "A"])].into());
    assert_eq!(map, r#"{"1":["A","B"]}"#);
}

#[test]
fn a_character_takes_the_rules_of_text() {
    assert_eq!(
        canonical!(
            #[idem(uppercase)]
            char = 'a'
        ),
        r#""A""#
    );
    assert_eq!(canonical!(#[idem(lowercase)] Option<char> = Some('A')), r#""a""#);
    assert_eq!(
        canonical!(
            #[idem(trim)]
            char = ' '
        ),
        r#""""#
    );
    assert_eq!(
        canonical!(
            #[idem(trim, lowercase)]
            char = 'A'
        ),
        r#""a""#
    );
    // The ohm sign is the letter omega, unless it is to stay what it is.
    assert_eq!(canonical!(char = '\u{2126}'), "\"\u{3a9}\"");
    assert_eq!(
        canonical!(
            #[idem(verbatim)]
            char = '\u{2126}'
        ),
        "\"\u{2126}\""
    );
}

#[test]
fn a_default_reaches_through_what_holds_the_value() {
    type Channel = Option<Box<str>>;
    for given in [None, Some("web"), Some("WEB")] {
        let given = || given.map(Box::from);
        assert_eq!(
            canonical!(
                #[idem(default = "Web", lowercase)]
                Channel = given()
            ),
            ""
        );
        assert_eq!(canonical!(#[idem(default = "Web", lowercase)] (Option<(Box<str>)>) = given()), "");
        assert_eq!(canonical!(#[idem(default = "Web", lowercase)] Arc<Channel> = Arc::new(given())), "");
    }
    assert_eq!(
        canonical!(
            #[idem(default = "web")]
            Channel = Some("app".into())
        ),
        r#""app""#
    );
}

#[derive(Canonical, PartialEq, Eq, PartialOrd, Ord, Hash, Clone, Copy)]
#[idem(rename_all = "snake_case")]
enum Account {
    Savings,
    Current,
    #[idem(rename = "a to \u{fb33}\"")]
    Odd,
}

#[test]
fn names_and_newtypes_are_keys() {
    #[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
    struct Token(#[idem(verbatim)] String);
    #[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
    struct Id<T>(T, std::marker::PhantomData<T>);

    type Shares = HashMap<Account, u8>;
    let shares = canonical!(Shares = [(Account::Savings, 1), (Account::Odd, 2), (Account::Current, 3)].into());
    assert_eq!(shares, "{\"a to \u{fb33}\\\"\":\"2\",\"current\":\"3\",\"savings\":\"1\"}");
    let tokens = canonical!(BTreeMap<Token, u8> = [(Token("e\u{301}".into()), 1), (Token("\u{e9}".into()), 2)].into());
    assert_eq!(tokens, "{\"e\u{301}\":\"1\",\"\u{e9}\":\"2\"}");
    let ids = [9, 10].map(|n| (Id(n, std::marker::PhantomData), true));
    assert_eq!(canonical!(BTreeMap<Id<u64>, bool> = ids.into()), r#"{"10":true,"9":true}"#);

    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Keys {
        map: BTreeMap<Account, u8>,
        tokens: BTreeMap<Token, u8>,
    }
    let text = Keys::contract().to_string();
    let names = r#"map: map from name("a\u0020to\u0020\ufb33\u0022",current,savings) to integer"#;
    assert!(text.contains(names), "{text}");
    assert!(text.contains("tokens: map from text to integer"), "{text}");
    assert_eq!(contract::parse(&text).unwrap(), Keys::contract());
    assert_eq!(Keys { map: [].into(), tokens: [].into() }.preimage(), r#"["idem/1","t",1,{"map":{},"tokens":{}}]"#);
}

#[test]
fn values_whose_text_is_always_a_string_are_keys() {
    macro_rules! key {
        ($ty:ty, $key:expr) => {
            canonical!(BTreeMap<$ty, bool> = [($key, true)].into())
        };
    }
    assert_eq!(key!(char, '"'), r#"{"\"":true}"#);
    assert_eq!(key!(i128, i128::MIN), r#"{"-170141183460469231731687303715884105728":true}"#);
    assert_eq!(key!(std::num::NonZeroU8, std::num::NonZero::<u8>::MIN), r#"{"1":true}"#);
    assert_eq!(key!(Decimal, Decimal::new(-150, 2)), r#"{"-1.5":true}"#);
    assert_eq!(key!(Decimal, -Decimal::ZERO), r#"{"0":true}"#);
    assert_eq!(key!(uuid::Uuid, uuid::Uuid::nil()), r#"{"00000000-0000-0000-0000-000000000000":true}"#);
    assert_eq!(key!(std::net::IpAddr, std::net::Ipv4Addr::LOCALHOST.into()), r#"{"127.0.0.1":true}"#);
    assert_eq!(key!(chrono::NaiveDate, chrono::NaiveDate::MIN), r#"{"-262143-01-01":true}"#);
    assert_eq!(key!(time::Date, time::Date::MAX), r#"{"9999-12-31":true}"#);
    assert_eq!(key!(jiff::civil::Date, jiff::civil::date(2026, 2, 28)), r#"{"2026-02-28":true}"#);
    assert_eq!(key!(Box<Rc<str>>, Box::new("a".into())), r#"{"a":true}"#);
    let epoch = r#"{"1970-01-01T00:00:00.000000000Z":true}"#;
    assert_eq!(key!(std::time::SystemTime, std::time::SystemTime::UNIX_EPOCH), epoch);
    assert_eq!(key!(chrono::DateTime<chrono::Utc>, chrono::DateTime::UNIX_EPOCH), epoch);
    assert_eq!(key!(time::OffsetDateTime, time::OffsetDateTime::UNIX_EPOCH), epoch);
    assert_eq!(key!(jiff::Timestamp, jiff::Timestamp::UNIX_EPOCH), epoch);
    let midnight = r#"{"00:00:00.000000000":true}"#;
    assert_eq!(key!(chrono::NaiveTime, chrono::NaiveTime::MIN), midnight);
    assert_eq!(key!(time::Time, time::Time::MIDNIGHT), midnight);
    assert_eq!(key!(jiff::civil::Time, jiff::civil::Time::MIN), midnight);
    let both = r#"{"-009999-01-01T00:00:00.000000000":true}"#;
    assert_eq!(key!(jiff::civil::DateTime, jiff::civil::DateTime::MIN), both);
    assert_eq!(key!(std::time::Duration, std::time::Duration::from_millis(1500)), r#"{"1.5":true}"#);
    assert_eq!(key!(chrono::TimeDelta, chrono::TimeDelta::seconds(-60)), r#"{"-60":true}"#);
    assert_eq!(key!([u8; 2], [0, 255]), r#"{"00ff":true}"#);
    assert_eq!(key!([u8; 0], []), r#"{"":true}"#);
    assert_eq!(key!([u8; 100], [1; 100]), format!("{{\"{}\":true}}", "01".repeat(100)));
    assert_all_differ(&[key!(u8, 1), key!(u8, 10), key!(i8, -1)]);
}

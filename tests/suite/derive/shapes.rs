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
    struct Card;
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

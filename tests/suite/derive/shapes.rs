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

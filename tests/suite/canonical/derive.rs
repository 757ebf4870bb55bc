//! The derive on the structs that people have.

use std::borrow::Cow;
use std::marker::PhantomData;

use idem_core::{Canonical, IdempotentCommand};

use super::canonical;

/// Names of the prelude that mean something else here, and nothing of the prelude itself.
mod names_of_our_own {
    #![no_implicit_prelude]
    #![allow(dead_code, non_camel_case_types)]

    pub(super) type Result<T> = ::std::result::Result<T, ::std::string::String>;
    pub(super) struct Option;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct bool;
    pub(super) struct u32;
    pub(super) struct str;
    pub(super) struct Canonical;
    pub(super) struct Box;

    #[derive(::idem_core::IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    pub(super) struct Pay {
        pub(super) a: ::std::string::String,
        #[idem(default = "web")]
        pub(super) b: ::std::option::Option<::std::string::String>,
        pub(super) c: Held,
        pub(super) d: Either,
    }

    #[derive(::idem_core::Canonical)]
    pub(super) struct Held(pub(super) u8);

    #[derive(::idem_core::Canonical)]
    pub(super) enum Either {
        Unit,
        Newtype(u8),
        Tuple(u8, u8),
        Object { v: u8 },
    }
}

#[test]
fn user_types_named_like_the_preludes_own_do_not_matter() {
    use names_of_our_own::{Either, Held, Pay};
    let pay = Pay { a: "a".into(), b: Some("web".into()), c: Held(1), d: Either::Object { v: 2 } };
    assert_eq!(pay.preimage(), r#"["idem/1","pay",1,{"a":"a","c":"1","d":{"Object":{"v":"2"}}}]"#);
}

mod r#async {
    #[derive(idem_core::IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    pub(super) struct r#Struct {
        pub(super) r#type: u8,
        pub(super) r#match: u8,
    }
}

#[test]
fn raw_identifiers_are_named_without_their_mark() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Renamed {
        #[idem(rename = "type")]
        kind: u8,
        #[idem(rename = "match")]
        pattern: u8,
    }
    let raw = r#async::r#Struct { r#type: 1, r#match: 2 };
    assert_eq!(raw.preimage(), r#"["idem/1","t",1,{"match":"2","type":"1"}]"#);
    assert_eq!(raw.command_hash(), Renamed { kind: 1, pattern: 2 }.command_hash());

    #[derive(Canonical)]
    #[allow(non_camel_case_types)]
    enum Raw {
        r#type,
    }
    assert_eq!(canonical!(Raw = Raw::r#type), r#""type""#);
}

/// Every local name that generated code could think of, as a field beside constants of these names, and beside statics:
/// a pattern of such a name would be the constant, and is an error beside a static.
macro_rules! fields_like_locals {
    ($($field:ident)*) => {
        mod beside_constants {
            fields_like_locals!(= const $($field)*);
        }

        mod beside_statics {
            fields_like_locals!(= static $($field)*);
        }

        #[test]
        fn fields_named_like_locals_of_the_expansion_all_count() {
            fields_like_locals!(@ beside_constants $($field)*);
            fields_like_locals!(@ beside_statics $($field)*);
        }
    };
    (@ $module:ident $($field:ident)*) => {
        let none = $module::Fields::default();
        $(
            let mut one = none.clone();
            one.$field = 1;
            assert_ne!(one.command_hash(), none.command_hash(), stringify!($module::$field));
        )*
        let either = canonical!($module::Either = $module::Either::Row { $($field: 1),* });
        $(assert!(either.contains(concat!("\"", stringify!($field), "\":\"1\"")));)*
    };
    (= $kind:tt $($field:ident)*) => {
        $(
            #[allow(non_upper_case_globals, dead_code)]
            $kind $field: () = ();
        )*

        #[derive(Clone, Default, idem_core::IdempotentCommand)]
        #[idem(operation = "t", version = 1)]
        pub(super) struct Fields {
            $(pub(super) $field: u8,)*
        }

        #[derive(idem_core::Canonical)]
        pub(super) enum Either {
            Row { $($field: u8,)* },
            #[allow(dead_code)]
            Other(u8),
        }
    };
}

fields_like_locals! {
    hasher buf out enc encoder value key name field state ctx f w self_ this result err version operation canonical hash
    sink it parts shapes item items default list any get is other member _idem a v
}

#[test]
fn generic_commands_need_only_the_bounds_of_what_they_hash() {
    struct NotHashable;

    trait Kind {
        type Id;
    }
    struct Card;
    impl Kind for Card {
        type Id = u64;
    }

    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Generic<'a, T: Clone = String, K = Card, X = NotHashable, const N: usize = 2>
    where
        K: Kind,
    {
        text: Cow<'a, str>,
        borrowed: &'a str,
        many: Vec<T>,
        #[idem(default = "x")]
        defaulted: Option<T>,
        id: K::Id,
        bytes: [u8; N],
        #[idem(exclude)]
        _excluded: Option<X>,
        _kind: PhantomData<(K, X)>,
    }

    let owned = String::from("a");
    let generic: Generic<'_> = Generic {
        text: Cow::Borrowed(&owned),
        borrowed: &owned,
        many: vec!["m".into()],
        defaulted: Some("x".into()),
        id: 7,
        bytes: [1, 2],
        _excluded: None,
        _kind: PhantomData,
    };
    assert_eq!(
        generic.preimage(),
        r#"["idem/1","t",1,{"borrowed":"a","bytes":"0102","id":"7","many":["m"],"text":"a"}]"#
    );
}

#[test]
fn newtypes_are_what_they_hold_and_take_attributes() {
    #[derive(Canonical)]
    struct Currency(String);
    #[derive(Canonical)]
    struct Code(#[idem(uppercase)] Currency);
    #[derive(Canonical)]
    struct Byte(u8);
    #[derive(Canonical)]
    struct Maybe(Option<u8>);
    #[derive(Canonical)]
    struct WithSecret(
        #[idem(exclude)]
        #[allow(dead_code)]
        *const u8,
        u8,
    );

    assert_eq!(
        canonical!(
            #[idem(uppercase)]
            Currency = Currency("eur".into())
        ),
        r#""EUR""#
    );
    assert_eq!(canonical!(#[idem(uppercase)] Vec<Currency> = vec![Currency("eur".into())]), r#"["EUR"]"#);
    assert_eq!(canonical!(Code = Code(Currency("eur".into()))), r#""EUR""#);
    assert_eq!(canonical!(Vec<Byte> = vec![Byte(1), Byte(255)]), r#""01ff""#);
    assert_eq!(canonical!(Maybe = Maybe(None)), "");
    assert_eq!(canonical!(Vec<Maybe> = vec![Maybe(None), Maybe(Some(1))]), r#"[null,"1"]"#);
    assert_eq!(canonical!(Vec<Option<Maybe>> = vec![None, Some(Maybe(None))]), "[null,[null]]");
    assert_eq!(canonical!(WithSecret = WithSecret(std::ptr::null(), 3)), r#""3""#);
}

#[test]
fn structs_of_every_kind() {
    #[derive(Canonical)]
    struct Unit;
    #[derive(Canonical)]
    struct Empty();
    #[derive(Canonical)]
    struct Pair(u8, Option<u8>);
    #[derive(Canonical)]
    enum Only {
        One { a: u8 },
    }
    assert_eq!(canonical!(Unit = Unit), "{}");
    assert_eq!(canonical!(Empty = Empty()), "[]");
    assert_eq!(canonical!(Pair = Pair(1, None)), r#"["1",null]"#);
    assert_eq!(canonical!(Only = Only::One { a: 1 }), r#"{"One":{"a":"1"}}"#);

    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Command(String);
    assert_eq!(Command("a".into()).preimage(), r#"["idem/1","t",1,"a"]"#);

    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    #[allow(dead_code)]
    enum Change {
        Open,
        Close(u8),
    }
    assert_eq!(Change::Close(1).preimage(), r#"["idem/1","t",1,{"Close":"1"}]"#);
}

#[test]
fn types_may_hold_themselves() {
    #[derive(Canonical)]
    struct Node {
        name: &'static str,
        children: Vec<Node>,
    }
    #[derive(Canonical)]
    struct Forest(Vec<Forest>);
    #[derive(Canonical)]
    struct Chain<T> {
        value: T,
        next: Option<Box<Chain<T>>>,
    }
    let leaf = Node { name: "b", children: vec![] };
    let tree = canonical!(Node = Node { name: "a", children: vec![leaf] });
    assert_eq!(tree, r#"{"children":[{"children":[],"name":"b"}],"name":"a"}"#);
    assert_eq!(canonical!(Forest = Forest(vec![Forest(vec![]), Forest(vec![])])), "[[],[]]");
    let chain = Chain { value: 1, next: Some(Box::new(Chain { value: 2, next: None })) };
    assert_eq!(canonical!(Chain<u8> = chain), r#"{"next":{"value":"2"},"value":"1"}"#);
}

#[test]
#[allow(unused_parens)] // a type in brackets is one of the cases
fn attributes_may_come_from_macro_rules_and_in_pieces() {
    macro_rules! command {
        ($ty:ty, $scale:literal, $default:literal, $value:expr) => {
            canonical!(
                #[idem(decimal(scale = $scale))]
                #[idem(default = $default)]
                $ty = $value
            )
        };
    }
    use rust_decimal::Decimal;
    assert_eq!(command!(Option<Decimal>, 2, "1.5", Some(Decimal::new(15, 1))), "");
    assert_eq!(command!((Decimal), 3, 1.5, Decimal::ONE), r#""1.000""#);
}

#[test]
fn a_crate_that_re_exports_idem_is_named() {
    mod my_sdk {
        pub(super) use idem_core as idem;
    }

    #[derive(my_sdk::idem::Canonical)]
    #[idem(crate = my_sdk::idem)]
    struct Named {
        a: u8,
    }
    #[derive(my_sdk::idem::Canonical)]
    #[idem(crate = "my_sdk::idem")]
    struct Quoted {
        a: u8,
    }
    assert_eq!(canonical!(Named = Named { a: 1 }), canonical!(Quoted = Quoted { a: 1 }));
}

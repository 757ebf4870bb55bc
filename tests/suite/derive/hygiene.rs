//! The expansion among the names and lints of a user's crate.

use idem_core::{Canonical, IdempotentCommand};

/// Versions, in a module where every name that the expansion could lean on means something else.
mod versions_among_other_names {
    #![no_implicit_prelude]
    #![allow(dead_code, non_camel_case_types)]

    pub(super) type Result<T> = ::std::result::Result<T, ()>;
    pub(super) struct Option;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Sized;
    pub(super) struct Iterator;
    pub(super) struct Canonical;
    pub(super) struct IdempotentCommand;
    pub(super) struct From;
    pub(super) struct TryFrom;
    pub(super) struct bool;
    pub(super) struct u32;
    pub(super) struct str;
    pub(super) struct __S;
    pub(super) struct __P;
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod idem_core {}

    #[derive(::idem_core::IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    pub(super) struct Old {
        pub(super) a: u8,
        pub(super) b: ::std::option::Option<u8>,
    }

    #[derive(::idem_core::IdempotentCommand)]
    #[idem(operation = "pay", version = 2, previous = Old, writes = 1)]
    pub(super) struct New {
        pub(super) a: u8,
        #[idem(until = 1)]
        pub(super) b: ::std::option::Option<u8>,
        #[idem(default = [])]
        pub(super) list: ::std::vec::Vec<u8>,
    }

    impl ::std::convert::From<Old> for New {
        fn from(old: Old) -> Self {
            Self { a: old.a, b: old.b, list: ::std::vec::Vec::new() }
        }
    }

    impl ::std::convert::TryFrom<&New> for Old {
        type Error = ();

        fn try_from(new: &New) -> Result<Self> {
            ::std::result::Result::Ok(Self { a: new.a, b: new.b })
        }
    }
}

#[test]
fn versions_do_not_lean_on_names_in_scope() {
    use versions_among_other_names::New;
    let new = New { a: 1, b: Some(2), list: vec![] };
    assert_eq!(new.preimage(), r#"["idem/1","pay",1,{"a":"1","b":"2"}]"#);
    assert_eq!(New { list: vec![0], ..new }.preimage(), r#"["idem/1","pay",2,{"a":"1","list":"00"}]"#);
}

/// The same command, written by two teams.
mod first {
    #[derive(idem_core::IdempotentCommand)]
    #[idem(operation = "transfer", version = 1)]
    pub(super) struct Transfer {
        pub(super) from: String,
        pub(super) to: super::second::Account,
        #[idem(default = 1)]
        pub(super) times: u8,
    }
}

mod second {
    #[derive(idem_core::Canonical)]
    pub(super) struct Account(pub(super) String);

    pub(super) mod deeper {
        #[derive(idem_core::IdempotentCommand)]
        #[idem(operation = "transfer", version = 1)]
        pub(in super::super) struct MoveMoney<'a> {
            #[idem(rename = "times", default = 1)]
            pub(in super::super) repetitions: u64,
            pub(in super::super) to: &'a str,
            #[idem(exclude)]
            pub(in super::super) _note: &'a str,
            pub(in super::super) from: std::sync::Arc<str>,
        }
    }
}

#[test]
fn moving_renaming_and_reordering_changes_no_hash() {
    let here = first::Transfer { from: "a".into(), to: second::Account("b".into()), times: 2 };
    let there = second::deeper::MoveMoney { repetitions: 2, to: "b", _note: "n", from: "a".into() };
    assert_eq!(here.command_hash(), there.command_hash());
    let other = first::Transfer { from: "b".into(), to: second::Account("a".into()), times: 2 };
    assert_ne!(here.command_hash(), other.command_hash());
}

#[test]
fn methods_of_the_same_names_are_not_called() {
    /// Inherent methods win over those of a trait, wherever generated code calls by dot.
    #[derive(Canonical)]
    struct Sly {
        v: u8,
    }
    #[allow(dead_code)]
    impl Sly {
        fn write(&self, _: &mut dyn idem_core::Sink) {
            panic!("called");
        }
        fn is_absent(&self) -> bool {
            true
        }
        fn write_member(&self, _: &mut dyn idem_core::Sink) {
            panic!("called");
        }
        fn parts(_: &mut ()) {}
        fn shape(_: &mut ()) {}
    }
    #[derive(Canonical)]
    struct Held(Sly);

    #[derive(IdempotentCommand)]
    #[idem(operation = "sly", version = 1)]
    struct Command {
        a: Sly,
        b: Held,
        c: Option<Sly>,
    }
    #[allow(dead_code)]
    impl Command {
        fn write_value_at(&self) {
            panic!("called");
        }
        fn hash_at(&self) {
            panic!("called");
        }
    }
    let command = Command { a: Sly { v: 1 }, b: Held(Sly { v: 2 }), c: Some(Sly { v: 3 }) };
    assert_eq!(command.preimage(), r#"["idem/1","sly",1,{"a":{"v":"1"},"b":{"v":"2"},"c":{"v":"3"}}]"#);
}

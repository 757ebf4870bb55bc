//! Which fields a command is made of: absent ones, defaults, names, versions.

use std::fmt::Debug;
use std::marker::PhantomData;

use idem_core::{Canonical, CommandHash, IdempotentCommand, InvalidHash, Verdict};
use serde::{Deserialize, Deserializer};

use super::{assert_all_differ, canonical, preimage};

fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[test]
fn null_and_missing_are_one_unless_the_type_tells_them_apart() {
    #[derive(Deserialize, IdempotentCommand)]
    #[idem(operation = "note", version = 1)]
    struct Note {
        note: Option<String>,
    }
    let note = |body| serde_json::from_str::<Note>(body).unwrap().preimage();
    assert_eq!(note("{}"), note(r#"{"note":null}"#));
    assert_ne!(note("{}"), note(r#"{"note":""}"#));

    #[derive(Deserialize, IdempotentCommand)]
    #[idem(operation = "note", version = 1)]
    struct Patch {
        #[serde(default, deserialize_with = "present")]
        note: Option<Option<String>>,
    }
    let patch = |body| serde_json::from_str::<Patch>(body).unwrap().preimage();
    assert_all_differ(&["{}", r#"{"note":null}"#, r#"{"note":""}"#].map(patch));
}

#[test]
fn an_absent_channel_a_null_one_and_the_default_are_one() {
    #[derive(Deserialize, IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct Pay {
        #[idem(default = "web")]
        channel: Option<String>,
    }
    let pay = |body| serde_json::from_str::<Pay>(body).unwrap().preimage();
    assert_eq!(pay("{}"), r#"["idem/1","pay",1,{}]"#);
    assert_eq!(pay("{}"), pay(r#"{"channel":null}"#));
    assert_eq!(pay("{}"), pay(r#"{"channel":"web"}"#));
    assert_all_differ(&["{}", r#"{"channel":"WEB"}"#, r#"{"channel":"we"}"#, r#"{"channel":"webs"}"#].map(pay));
}

/// serde fills nothing in because of idem's default: a plain text that is left out is a request that serde refuses.
#[test]
fn a_default_makes_no_field_optional_for_serde() {
    #[derive(serde::Deserialize, IdempotentCommand)]
    #[serde(deny_unknown_fields)]
    #[idem(operation = "t", version = 1)]
    struct Plain {
        #[idem(default = "web")]
        channel: String,
        a: bool,
    }
    #[derive(serde::Deserialize, IdempotentCommand)]
    #[serde(deny_unknown_fields)]
    #[idem(operation = "t", version = 1)]
    struct Other {
        #[idem(default = "app")]
        channel: String,
        a: bool,
    }
    assert!(serde_json::from_str::<Plain>(r#"{"a":true}"#).is_err());
    let [web, upper] = ["web", "WEB"].map(|channel| {
        let request = serde_json::json!({ "channel": channel, "a": true });
        let plain: Plain = serde_json::from_value(request.clone()).unwrap();
        let other: Other = serde_json::from_value(request).unwrap();
        assert_eq!(plain.channel, other.channel);
        assert!(plain.a && other.a);
        (plain.preimage(), other.preimage())
    });
    assert_eq!(web.0, r#"["idem/1","t",1,{"a":true}]"#);
    assert_eq!(web.1, r#"["idem/1","t",1,{"a":true,"channel":"web"}]"#);
    assert_eq!(upper.0, r#"["idem/1","t",1,{"a":true,"channel":"WEB"}]"#);
    assert_ne!(Plain::contract(), Other::contract());
}

#[test]
fn a_default_is_normalised_like_the_value() {
    let currency = |value: &str| {
        canonical!(
            #[idem(uppercase, default = "eur")]
            String = value.into()
        )
    };
    assert_eq!([currency("EUR"), currency("eUr")], ["", ""]);
    assert_eq!(currency("usd"), r#""USD""#);
    assert_eq!(
        canonical!(
            #[idem(default = "caf\u{e9}")]
            String = "cafe\u{301}".into()
        ),
        ""
    );
}

#[test]
fn a_command_with_nothing_given_is_a_normal_command() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "search", version = 1)]
    struct Search {
        text: Option<String>,
        page: Option<u32>,
    }
    let none = Search { text: None, page: None };
    assert_eq!(none.preimage(), r#"["idem/1","search",1,{}]"#);
    assert_ne!(none.command_hash(), Search { text: Some(String::new()), page: None }.command_hash());
}

#[test]
fn operation_and_version_are_in_the_hash_of_an_empty_command() {
    macro_rules! empty {
        ($operation:literal, $version:literal) => {{
            #[derive(IdempotentCommand)]
            #[idem(operation = $operation, version = $version, allow_empty)]
            struct Empty;
            Empty.preimage()
        }};
    }
    assert_all_differ(&[empty!("ping", 1), empty!("ping", 2), empty!("pong", 1)]);
    assert_eq!(empty!("ping", 2147483647), r#"["idem/1","ping",2147483647,{}]"#);
}

#[test]
fn volatile_fields_do_not_make_another_command() {
    struct NotHashable;

    #[derive(IdempotentCommand)]
    #[idem(operation = "attach", version = 1)]
    struct Attach {
        sha256: String,
        size: u64,
        #[idem(exclude)]
        temp_url: String,
        #[idem(exclude)]
        _session: NotHashable,
    }
    let attach = |sha256: &str, temp_url: &str| Attach {
        sha256: sha256.into(),
        size: 1,
        temp_url: temp_url.into(),
        _session: NotHashable,
    };
    let stored = attach("aa", "https://a").command_hash();
    assert_eq!(attach("aa", "https://b").verdict(&stored), Verdict::Same);
    assert_eq!(attach("bb", "https://a").verdict(&stored), Verdict::Different);
    assert_eq!(attach("aa", "").temp_url, "");
}

#[test]
fn names_are_idems_own_and_serdes_are_not_looked_at() {
    #[derive(Deserialize, IdempotentCommand)]
    #[serde(rename_all = "camelCase")]
    #[idem(operation = "order", version = 1, rename_all = "kebab-case")]
    struct Order {
        #[serde(rename = "ref")]
        merchant_reference: String,
        #[idem(rename = "Art. \"№\"")]
        item_number: u8,
    }
    let order: Order = serde_json::from_str(r#"{"ref":"m","itemNumber":1}"#).unwrap();
    assert_eq!(order.preimage(), r#"["idem/1","order",1,{"Art. \"№\"":"1","merchant-reference":"m"}]"#);
}

#[test]
fn members_are_sorted_by_utf_16() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Sorted {
        #[idem(rename = "\u{fb33}")]
        a: u8,
        #[idem(rename = "\u{1f600}")]
        b: u8,
        #[idem(rename = "b")]
        c: u8,
        #[idem(rename = "B")]
        d: u8,
        #[idem(rename = "")]
        e: u8,
    }
    let sorted = Sorted { a: 1, b: 2, c: 3, d: 4, e: 5 }.preimage();
    assert_eq!(
        sorted,
        "[\"idem/1\",\"t\",1,{\"\":\"5\",\"B\":\"4\",\"b\":\"3\",\"\u{1f600}\":\"2\",\"\u{fb33}\":\"1\"}]"
    );
}

#[test]
fn phantom_data_is_no_member() {
    struct Tag;
    let field = preimage!(PhantomData<Tag> = PhantomData);
    assert_eq!(field, r#"["idem/1","t",1,{}]"#);
    type Aliased = PhantomData<Tag>;
    assert_eq!(preimage!(Aliased = PhantomData), field);

    #[derive(Canonical)]
    struct Id<T>(u32, PhantomData<T>);
    assert_eq!(canonical!(Id<Tag> = Id(7, PhantomData)), r#""7""#);
}

#[test]
fn a_record_of_another_version_or_form_is_never_a_guess() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 2)]
    struct Two {
        v: u8,
    }
    let two = Two { v: 1 };
    let hash = two.command_hash();
    let stored = |form, version| CommandHash::from_parts(form, version, hash.digest()).unwrap();
    assert_eq!(two.verdict(&stored(1, 2)), Verdict::Same);
    assert_eq!(Two { v: 2 }.verdict(&stored(1, 2)), Verdict::Different);
    assert_eq!(two.verdict(&stored(1, 3)), Verdict::Newer);
    assert_eq!(two.verdict(&stored(2, 1)), Verdict::Newer);
    assert_eq!(two.verdict(&stored(1, 1)), Verdict::Retired);
    assert_eq!(two.hash_at(2), Some(hash));
    assert_eq!([two.hash_at(1), two.hash_at(3)], [None, None]);
}

#[test]
fn a_stored_hash_is_checked_before_it_is_believed() {
    let digest = [7; 32];
    let hash = CommandHash::from_parts(1, 1, digest).unwrap();
    assert_eq!(hash.to_string().parse(), Ok(hash));
    assert_eq!(format!("{hash:?}"), hash.to_string());
    assert_eq!(CommandHash::from_parts(0, 1, digest), Err(InvalidHash::Form));
    assert_eq!(CommandHash::from_parts(1, 0, digest), Err(InvalidHash::Version { version: 0 }));
    assert_eq!(CommandHash::from_parts(1, 1 << 31, digest), Err(InvalidHash::Version { version: 1 << 31 }));
    assert_eq!(CommandHash::from_parts(1, 1, [7; 31]), Err(InvalidHash::Digest { len: 31 }));

    let hex = "07".repeat(32);
    let texts = ["idem1.1.", "idem01.1.", "idem1.01.", "idem+1.1.", "idem1.+1.", "Idem1.1.", "idem1.1.1.", "idem1."];
    for text in texts.iter().skip(1).map(|prefix| format!("{prefix}{hex}")) {
        text.parse::<CommandHash>().expect_err(&text);
    }
    for text in ["", "idem1.1.", &format!("idem1.1.{}", "0A".repeat(32)), &format!("idem1.1.{hex} ")] {
        text.parse::<CommandHash>().expect_err(text);
    }
    fn is_debug(_: impl Debug) {}
    is_debug(hash);
}

//! The committed file of a contract.

use std::panic::catch_unwind;

use idem_core::{IdempotentCommand, assert_contract};

use super::folder::{Folder, Insta};
use super::{Category, Item, Method, PlaceOrder, Sku, typical};

#[test]
fn place_order_contract() {
    assert_contract!(PlaceOrder, {
        "typical" => typical(),
        "everything given, at its default or not" => PlaceOrder {
            channel: Some("caf\u{e9}\u{a0}\"\r\n".into()),
            tip: Some("1.005".parse().unwrap()),
            shipping: Some(Default::default()),
            method: Method::CardToken("e\u{301}".into()),
            range: Some((1, vec![Item { sku: Sku("S".into()), quantity: 1 }])),
            ..typical()
        },
        "split" => PlaceOrder { method: Method::Split(1, 2), note: Some(Some("  ".into())), ..typical() },
        "cash" => PlaceOrder { method: Method::Cash, parent: None, note: None, ..typical() },
        "with all that may be left out" => PlaceOrder {
            method: Method::Bank { iban: "NL91".into(), address: Some(Default::default()) },
            parent: Some(Box::new(Category {
                name: "books".into(),
                parents: vec![Category { name: "goods".into(), parents: vec![] }],
            })),
            ..typical()
        },
    });
}

#[test]
fn a_users_own_settings_of_insta_change_nothing() {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_suffix("mine");
    settings.set_snapshot_path("elsewhere");
    settings.set_prepend_module_to_snapshot(true);
    // Where it applied, the file would hold it, or differ from what does.
    settings.add_filter("[0-9a-f]{64}", "H");
    settings.bind(|| {
        place_order_contract();
        // The filter is one that works.
        insta::assert_snapshot!("0".repeat(64), @"H");
    });
}

fn message(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(run).expect_err("it should have failed");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn two_samples_of_one_label_fail() {
    let message = message(|| {
        assert_contract!(PlaceOrder, { "typical" => typical(), "typical" => typical() });
    });
    assert_eq!(message, r#"two samples of `place_order` are labelled "typical""#);
}

/// Without this, two tests would take turns in accepting their own version of one file.
#[test]
fn one_name_asserted_twice_with_different_contents_fails() {
    macro_rules! ping {
        ($ty:ty, $v:expr) => {
            |folder: &Folder| {
                #[derive(IdempotentCommand)]
                #[idem(operation = "asserted_twice", version = 1)]
                struct Ping {
                    v: $ty,
                }
                folder.assert_in_the_same_run(Insta::Accepts, &[("one", &Ping { v: $v })])
            }
        };
    }
    let folder = Folder::new();
    ping!(u8, 1)(&folder).unwrap_err();
    ping!(u8, 1)(&folder).unwrap();
    let message = ping!(&'static str, "x")(&folder).unwrap_err();
    assert!(message.contains("asserted twice with different contents"), "{message}");
}

#[test]
fn white_space_and_look_alikes_cannot_hide() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "hiding", version = 1)]
    struct Hiding {
        #[idem(default = "web\r\n")]
        v: String,
    }
    // insta compares without blanks at the ends of lines, and takes CRLF for LF: nothing of that kind is in the text.
    let contract = Hiding::contract().to_string();
    assert!(contract.contains(r#"v: text = "web\r\n""#), "{contract}");
    for hidden in [
        "web ",
        "web\n",
        "\nweb",
        "we\u{a0}b",
        "w\u{435}b",
        "we\u{200b}b",
        "web\u{2028}",
        "\u{7f}web",
        "\u{d0}web",
        "\u{110}web",
    ] {
        let folder = Folder::new();
        folder.assert(Insta::Accepts, &[("one", &Hiding { v: hidden.into() })]).unwrap_err();
        let shown = folder.read("hiding.v1");
        assert!(shown.bytes().all(|b| matches!(b, b'\n' | b' '..=b'~')), "{shown}");
        assert!(shown.lines().all(|line| line.trim_end() == line), "{shown}");
        let preimage = shown.lines().find_map(|line| line.strip_prefix("  preimage: ")).unwrap();
        let read: serde_json::Value = serde_json::from_str(preimage).unwrap();
        assert_eq!(read[3]["v"], hidden, "what is shown is still the same JSON");
    }
}

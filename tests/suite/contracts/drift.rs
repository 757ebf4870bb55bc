//! Changes that move hashes, and what lets nobody wave them through.

use idem_core::canonical::{Elementwise, Shape, Shapes, none};
use idem_core::{Canonical, IdempotentCommand, Sink};
use rust_decimal::Decimal;

use super::folder::{Folder, Insta};

/// A command, one way or another, with samples of it that show everything.
macro_rules! command {
    ($({$($attribute:tt)*})? $name:ident { $($(#[$field:meta])* $member:ident: $ty:ty = $value:expr, $other:expr;)* }) => {
        #[derive(IdempotentCommand)]
        #[idem(operation = "create_payment", version = 1 $($($attribute)*)?)]
        struct $name { $($(#[$field])* $member: $ty),* }

        impl $name {
            fn samples() -> [Self; 2] {
                [Self { $($member: $value),* }, Self { $($member: $other),* }]
            }

            #[allow(dead_code, reason = "one test adds a sample")]
            fn assert(folder: &Folder, insta: Insta) -> Result<(), String> {
                let [typical, minimal] = Self::samples();
                folder.assert(insta, &[("typical", &typical), ("minimal", &minimal)])
            }
        }
    };
}

command!(Payment {
    account_id: String = "acc_1".into(), "acc_2".into();
    #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
    #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
    #[idem(default = "web")] channel: Option<String> = Some("app".into()), None;
});

fn committed() -> Folder {
    let [typical, minimal] = Payment::samples();
    Folder::with(&[("typical", &typical), ("minimal", &minimal)])
}

/// Fails in every mood of insta, before and after a careless accept, and passes once the section is taken out by hand.
fn assert_drift(change: fn(&Folder, Insta) -> Result<(), String>, told: &str) {
    for insta in Insta::ALL {
        let folder = committed();
        let message = change(&folder, insta).unwrap_err();
        assert!(message.contains(told), "{message}");
        assert!(message.contains("breaking: "), "{message}");
        assert!(message.contains("`version = 2`"), "{message}");
    }
    let folder = committed();
    change(&folder, Insta::Accepts).unwrap_err();
    let accepted = folder.read("create_payment.v1");
    assert!(accepted.starts_with("drift:\n") && accepted.contains(told), "{accepted}");
    for insta in Insta::ALL {
        let message = change(&folder, insta).unwrap_err();
        assert!(message.contains("has a `drift:` section"), "{message}");
        assert_eq!(folder.read("create_payment.v1"), accepted, "nothing writes over it");
        assert_eq!(folder.asked(), ["create_payment.v1"], "insta takes it for unreferenced and deletes it");
    }
    // The way back does not pass either while the section is there.
    Payment::assert(&folder, Insta::Accepts).unwrap_err();
    let by_hand = &accepted[accepted.find("idem contract 1").unwrap()..];
    folder.write("create_payment.v1", by_hand);
    change(&folder, Insta::Fails).unwrap();
}

#[test]
fn a_scale_changed_fails() {
    command!(Changed {
        account_id: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 3))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        #[idem(default = "web")] channel: Option<String> = Some("app".into()), None;
    });
    assert_drift(Changed::assert, "breaking: amount was `decimal(scale = 2)`, is `decimal(scale = 3)`");
}

#[test]
fn uppercase_taken_away_fails() {
    command!(Changed {
        account_id: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        currency: String = "eur".into(), "USD".into();
        #[idem(default = "web")] channel: Option<String> = Some("app".into()), None;
    });
    assert_drift(Changed::assert, "breaking: currency was `text(uppercase)`, is `text`");
}

#[test]
fn a_default_changed_fails_though_no_sample_moves() {
    command!(Changed {
        account_id: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        #[idem(default = "web\r\n")] channel: Option<String> = Some("app".into()), None;
    });
    let [old, new] = [Payment::samples(), Payment::samples()].map(|samples| samples.map(|sample| sample.preimage()));
    assert_eq!(old, new);
    assert_drift(Changed::assert, r#"breaking: channel was `"web"`, is `"web\r\n"`"#);
}

#[test]
fn a_field_renamed_fails() {
    command!(Changed {
        account: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        #[idem(default = "web")] channel: Option<String> = Some("app".into()), None;
    });
    // Beside `currency` there is one more of the kind, but only this one went.
    assert_drift(Changed::assert, "breaking: account_id was `account_id: text`, is `account: text`");
}

#[test]
fn a_required_field_added_fails() {
    command!(Changed {
        account_id: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        #[idem(default = "web")] channel: Option<String> = Some("app".into()), None;
        purpose: String = "rent".into(), "food".into();
    });
    assert_drift(Changed::assert, "breaking: purpose is new: `purpose: text`");
}

#[test]
fn a_field_excluded_fails() {
    command!(Changed {
        account_id: String = "acc_1".into(), "acc_2".into();
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        #[idem(exclude)] #[expect(dead_code)] channel: Option<String> = Some("app".into()), None;
    });
    assert_drift(Changed::assert, "breaking: channel was `channel: optional text = \"web\"`, is `channel: not hashed`");
}

#[test]
fn an_option_added_and_fields_reordered_leave_all_hashes() {
    command!(Changed {
        #[idem(default = "web")] channel: Option<Box<str>> = Some("app".into()), None;
        #[idem(uppercase)] currency: String = "eur".into(), "USD".into();
        account_id: Account = Account("acc_1".into()), Account("acc_2".into());
        note: Option<String> = None, None;
        #[idem(decimal(scale = 2))] amount: Decimal = Decimal::new(1050, 2), Decimal::ONE;
    });
    #[derive(Canonical)]
    struct Account(String);
    let folder = committed();
    let before = folder.read("create_payment.v1");
    let [typical, minimal] = Changed::samples();
    let noted = Changed { note: Some("n".into()), ..Changed::samples().into_iter().next().unwrap() };
    let samples = [("typical", &typical), ("minimal", &minimal), ("noted", &noted)];
    for insta in Insta::ALL {
        let message = folder.assert(insta, &samples).unwrap_err();
        assert!(message.contains("additive: note is new: `note: optional text`"), "{message}");
        assert!(message.contains("hashes stay"), "{message}");
        assert!(!message.contains("breaking"), "{message}");
    }
    folder.assert(Insta::Fails, &samples).unwrap();
    let after = folder.read("create_payment.v1");
    assert!(before.lines().filter(|line| line.starts_with("  hash: ")).all(|hash| after.contains(hash)), "{after}");
    assert!(!after.contains("drift"), "{after}");
}

#[test]
fn an_edited_sample_fails_with_the_way_out() {
    let folder = committed();
    let [typical, minimal] = Payment::samples();
    let edited = Payment { amount: Decimal::new(1060, 2), ..Payment::samples().into_iter().next().unwrap() };
    for insta in Insta::ALL {
        let folder = committed();
        let message = folder.assert(insta, &[("typical", &edited), ("minimal", &minimal)]).unwrap_err();
        assert!(message.contains("sample \"typical\" has another hash"), "{message}");
        assert!(message.contains("give\nthe new value a new label"), "{message}");
    }
    let samples = [("typical", &typical), ("minimal", &minimal), ("ten cents more", &edited)];
    folder.assert(Insta::Accepts, &samples).unwrap_err();
    folder.assert(Insta::Fails, &samples).unwrap();
}

#[test]
fn a_sample_taken_away_fails() {
    let folder = committed();
    let [typical, minimal] = Payment::samples();
    folder.assert(Insta::Accepts, &[("typical", &typical), ("other", &minimal)]).unwrap_err();
    assert!(folder.read("create_payment.v1").contains("sample \"minimal\" is gone"));
    let message = folder.assert(Insta::Accepts, &[("typical", &typical), ("other", &minimal)]).unwrap_err();
    assert!(message.contains("has a `drift:` section"), "{message}");
}

#[test]
fn a_missing_file_fails_whatever_insta_does() {
    for insta in Insta::ALL {
        let folder = Folder::new();
        let message = Payment::assert(&folder, insta).unwrap_err();
        assert!(message.contains("is missing"), "{message}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_drift() {
    let folder = committed();
    let text = folder.read("create_payment.v1");
    for broken in [text.replace("version: 1", "<<<<<<< HEAD"), text.replace("  hash", "  hsah"), String::new()] {
        folder.write("create_payment.v1", &broken);
        let message = Payment::assert(&folder, Insta::Accepts).unwrap_err();
        assert!(message.contains("Nothing tells whether hashes stay"), "{message}");
        let message = Payment::assert(&folder, Insta::Accepts).unwrap_err();
        assert!(message.contains("has a `drift:` section"), "{message}");
    }
}

#[test]
fn line_ends_of_another_system_are_no_change() {
    let folder = committed();
    let text = folder.read("create_payment.v1");
    folder.write("create_payment.v1", &text.replace('\n', "\r\n"));
    Payment::assert(&folder, Insta::Passes).unwrap();
}

#[test]
fn a_sample_that_code_behind_the_contract_moved_is_told_with_the_way_out() {
    macro_rules! booking {
        ($text:expr) => {{
            enum Cents {}
            impl Elementwise for Cents {}
            struct Money(u64);
            impl Canonical<Cents> for Money {
                fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                    let write: fn(u64) -> String = $text;
                    Canonical::<none>::write(&write(self.0), sink);
                }
                fn shape(_: &mut Shapes) -> Shape {
                    Shape::leaf("decimal").with_rule("cents")
                }
            }
            #[derive(IdempotentCommand)]
            #[idem(operation = "book", version = 1)]
            struct Book {
                #[idem(with = "Cents")]
                amount: Money,
            }
            |folder: &Folder| folder.assert(Insta::Accepts, &[("one", &Book { amount: Money(1050) })])
        }};
    }
    let folder = Folder::new();
    booking!(|cents| format!("{}.{:02}", cents / 100, cents % 100))(&folder).unwrap_err();
    let message = booking!(|cents| format!("{}.{:03}", cents / 100, cents % 100))(&folder).unwrap_err();
    assert!(message.contains("sample \"one\" has another hash"), "{message}");
    assert!(message.contains("code that no contract shows (`with = …`"), "{message}");
    assert!(message.contains("give the command\n`version = 2`"), "{message}");
}

/// Whether it is the one or the other only its author knows: both have no file, and the members of one that has.
#[test]
fn an_operation_with_the_members_of_another_is_asked_whether_it_was_renamed() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct Pay {
        account_id: String,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "make_payment", version = 1)]
    struct MakePayment {
        account_id: String,
    }
    let folder = Folder::with(&[("one", &Pay { account_id: "a".into() })]);
    let message = folder.assert(Insta::Accepts, &[("one", &MakePayment { account_id: "a".into() })]).unwrap_err();
    assert!(message.contains("pay.v1.snap has the same members under another name"), "{message}");
    assert!(message.contains("If `operation` was renamed: put the name back"), "{message}");
    assert!(message.contains("If this is a new operation, accept it"), "{message}");
    // Accepted it passes; a renamed one leaves a file behind that no run asks insta for, which is what
    // `--unreferenced=reject` looks for. A new one leaves none: the test of the other asks for its own.
    folder.assert(Insta::Fails, &[("one", &MakePayment { account_id: "a".into() })]).unwrap();
    assert_eq!(folder.asked(), ["make_payment.v1"]);
    assert!(folder.has("pay.v1"));
    folder.assert(Insta::Fails, &[("one", &Pay { account_id: "a".into() })]).unwrap();
    assert_eq!(folder.asked(), ["pay.v1"]);
}

#[test]
fn an_operation_with_members_of_its_own_is_not_taken_for_a_renamed_one() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "refund", version = 1)]
    struct Refund {
        payment_id: String,
    }
    let message = committed().assert(Insta::Accepts, &[("one", &Refund { payment_id: "p".into() })]).unwrap_err();
    assert!(message.contains("refund.v1.snap is missing\ninsta has written it"), "{message}");
    assert!(!message.contains("another name"), "{message}");
}

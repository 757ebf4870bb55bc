//! Older versions: kept ones have their own files, dropped ones are told of.

use idem_core::IdempotentCommand;

use super::folder::{Folder, Insta};

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 1)]
struct RefundV1 {
    payment: String,
}

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 2, previous = RefundV1)]
struct Refund {
    payment_id: String,
    part: Option<u32>,
}

impl From<&Refund> for RefundV1 {
    fn from(refund: &Refund) -> Self {
        Self { payment: refund.payment_id.clone() }
    }
}

impl From<RefundV1> for Refund {
    fn from(old: RefundV1) -> Self {
        Self { payment_id: old.payment, part: None }
    }
}

fn refunds() -> [Refund; 2] {
    [Refund { payment_id: "pay_1".into(), part: None }, Refund { payment_id: "pay_1".into(), part: Some(50) }]
}

fn first() -> Folder {
    Folder::with(&[("whole", &RefundV1 { payment: "pay_1".into() })])
}

#[test]
fn an_older_version_that_is_kept_is_held_to_its_own_file() {
    let folder = first();
    let before = folder.read("refund.v1");
    let [whole, part] = refunds();
    let samples = [("whole", &whole), ("part", &part)];
    let message = folder.assert(Insta::Accepts, &samples).unwrap_err();
    assert!(message.contains("refund.v2.snap") && !message.contains("refund.v1.snap"), "{message}");
    folder.assert(Insta::Fails, &samples).unwrap();
    // What version 1 cannot say is no sample of it.
    assert_eq!(folder.read("refund.v1"), before);
    assert_eq!(folder.asked(), ["refund.v1", "refund.v2"]);

    folder.write("refund.v1", &before.replace("payment: text", "payment: text(trim)"));
    let message = folder.assert(Insta::Accepts, &samples).unwrap_err();
    assert!(message.contains("refund.v1.snap and the code disagree"), "{message}");
    assert!(message.contains("breaking: payment was `text(trim)`, is `text`"), "{message}");
}

/// A field that has gone is still hashed by the old rules.
#[test]
fn what_no_sample_shows_of_an_older_version_is_listed() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "refund", version = 2, oldest = 1)]
    struct Trimmed {
        payment: String,
        note: Option<String>,
        #[idem(until = 1)]
        reason: Option<String>,
    }
    let refund = |note: Option<&str>, reason: Option<&str>| {
        let [note, reason] = [note, reason].map(|text| text.map(str::to_owned));
        Trimmed { payment: "pay_1".into(), note, reason }
    };
    let [bare, noted, both] = [refund(None, None), refund(Some("n"), None), refund(Some("n"), Some("late"))];
    let folder = Folder::new();
    let told = "no sample of `refund` shows by the rules of version 1\n  reason: given\nWhat";
    for insta in [Insta::Accepts, Insta::Accepts, Insta::Passes] {
        let message = folder.assert(insta, &[("bare", &bare), ("noted", &noted)]).unwrap_err();
        assert!(message.contains(told), "{message}");
        assert!(!message.contains("shows\n"), "{message}");
    }
    let message = folder.assert(Insta::Accepts, &[("bare", &bare)]).unwrap_err();
    assert!(message.contains("shows\n  note: given\nWhat"), "{message}");
    assert_eq!(message.matches("note: given").count(), 1, "{message}");
    let folder = Folder::new();
    let samples = [("bare", &bare), ("noted", &noted), ("both", &both)];
    folder.assert(Insta::Accepts, &samples).unwrap_err();
    folder.assert(Insta::Fails, &samples).unwrap();
}

#[test]
fn a_version_that_the_code_drops_is_told_of_with_its_consequence() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "refund", version = 2)]
    struct Alone {
        payment_id: String,
    }
    let folder = first();
    let sample = Alone { payment_id: "pay_1".into() };
    for insta in [Insta::Accepts, Insta::Accepts, Insta::Passes] {
        let message = folder.assert(insta, &[("whole", &sample)]).unwrap_err();
        assert!(message.contains("refund.v1.snap is of a version that the code no longer keeps"), "{message}");
        assert!(message.contains("409 IDEMPOTENCY_CONTRACT_RETIRED"), "{message}");
        assert!(folder.asked().contains(&"refund.v1".to_owned()), "insta would delete it as unreferenced");
    }
    assert!(folder.has("refund.v1"));
}

#[test]
fn a_version_that_is_gone_from_the_code_is_told_of() {
    let folder = first();
    folder.rename("refund.v1", "refund.v3");
    let message = folder.assert(Insta::Accepts, &[("whole", &RefundV1 { payment: "pay_1".into() })]).unwrap_err();
    assert!(message.contains("refund.v3.snap is of a version that the code does not know"), "{message}");
    assert!(message.contains("503 IDEMPOTENCY_CONTRACT_UNKNOWN"), "{message}");
}

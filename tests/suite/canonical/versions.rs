//! Yesterday's retry after today's deploy: a record is compared by the rules that wrote it.

mod chain;

use idem_core::{CommandHash, IdempotentCommand, Verdict};
use rust_decimal::Decimal;
use serde_json::Value;

/// The struct as it was when version 1 was deployed, frozen.
#[derive(Clone, IdempotentCommand)]
#[idem(operation = "create_payment", version = 1)]
struct CreatePaymentV1 {
    account_id: String,
    #[idem(decimal(scale = 2))]
    amount: Decimal,
    currency: String,
    merchant_ref: String,
    legacy_flag: Option<bool>,
}

/// Today: the reference renamed, the currency in upper case, the flag gone, capture new.
#[derive(Clone, IdempotentCommand)]
#[idem(operation = "create_payment", version = 2, previous = CreatePaymentV1)]
struct CreatePayment {
    account_id: String,
    #[idem(decimal(scale = 2))]
    amount: Decimal,
    #[idem(uppercase)]
    currency: String,
    merchant_reference: String,
    #[idem(default = true)]
    capture: bool,
    #[idem(until = 1)]
    legacy_flag: Option<bool>,
}

struct HasNoWordsForIt;

impl TryFrom<&CreatePayment> for CreatePaymentV1 {
    type Error = HasNoWordsForIt;

    fn try_from(today: &CreatePayment) -> Result<Self, HasNoWordsForIt> {
        if !today.capture {
            return Err(HasNoWordsForIt);
        }
        Ok(Self {
            account_id: today.account_id.clone(),
            amount: today.amount,
            currency: today.currency.clone(),
            merchant_ref: today.merchant_reference.clone(),
            legacy_flag: today.legacy_flag,
        })
    }
}

impl From<CreatePaymentV1> for CreatePayment {
    fn from(old: CreatePaymentV1) -> Self {
        Self {
            account_id: old.account_id,
            amount: old.amount,
            currency: old.currency,
            merchant_reference: old.merchant_ref,
            capture: true,
            legacy_flag: old.legacy_flag,
        }
    }
}

fn yesterday() -> CreatePaymentV1 {
    CreatePaymentV1 {
        account_id: "acc_1".into(),
        amount: Decimal::TEN,
        currency: "eur".into(),
        merchant_ref: "m-1".into(),
        legacy_flag: None,
    }
}

fn today() -> CreatePayment {
    yesterday().into()
}

#[test]
fn the_vectors_of_versions_are_reproduced_through_the_derive() {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/canonical-form-1.json")).unwrap();
    let unsaid = CreatePayment { capture: false, ..today() };
    let flagged = CreatePayment { legacy_flag: Some(true), ..today() };
    let cases: [(&str, Option<String>, Option<CommandHash>); 6] = [
        ("evo-01", Some(yesterday().preimage()), Some(yesterday().command_hash())),
        ("evo-02", today().preimage_at(1), today().hash_at(1)),
        ("evo-03", today().preimage_at(2), Some(flagged.command_hash())),
        ("evo-04", unsaid.preimage_at(1), unsaid.hash_at(1)),
        ("evo-05", Some(unsaid.preimage()), unsaid.hash_at(2)),
        ("evo-06", flagged.preimage_at(1), flagged.hash_at(1)),
    ];
    let known = vectors["vectors"].as_array().unwrap().iter();
    let known: Vec<_> = known.filter(|vector| vector["id"].as_str().unwrap().starts_with("evo")).collect();
    assert_eq!(known.len(), cases.len());
    for (vector, (id, preimage, hash)) in known.into_iter().zip(cases) {
        assert_eq!(vector["id"], id);
        assert_eq!(vector["preimage"].as_str(), preimage.as_deref(), "{id}");
        let hash = hash.map(|hash| hash.to_string());
        assert_eq!(vector["sha256"].as_str(), hash.as_deref().map(|hash| hash.rsplit('.').next().unwrap()), "{id}");
    }
}

#[test]
fn yesterdays_record_answers_todays_retry() {
    let stored = yesterday().command_hash();
    assert_eq!(today().verdict(&stored), Verdict::Same);
    // Version 1 told the spellings apart, and still does.
    assert_eq!(CreatePayment { currency: "EUR".into(), ..today() }.verdict(&stored), Verdict::Different);
    assert_eq!(CreatePayment { legacy_flag: Some(true), ..today() }.verdict(&stored), Verdict::Different);
    assert_eq!(CreatePayment { capture: false, ..today() }.verdict(&stored), Verdict::Different);
    // A new record is by today's rules.
    assert_eq!(today().command_hash().version(), 2);
    assert_eq!(CreatePayment { currency: "EUR".into(), ..today() }.command_hash(), today().command_hash());
}

#[test]
fn a_record_of_a_later_build_is_no_mismatch_and_no_replay() {
    let hash = today().command_hash();
    let of = |form, version| CommandHash::from_parts(form, version, hash.digest()).unwrap();
    assert_eq!(today().verdict(&of(1, 2)), Verdict::Same);
    assert_eq!(today().verdict(&of(1, 3)), Verdict::Newer);
    assert_eq!(today().verdict(&of(2, 2)), Verdict::Newer);
    assert_eq!(yesterday().verdict(&hash), Verdict::Newer);
}

/// A conversion that forgets what is new: without the way back, both commands would have one old hash.
#[test]
fn a_conversion_that_forgets_a_field_replays_nothing() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct PayV1 {
        amount: u64,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 2, previous = PayV1)]
    struct Pay {
        amount: u64,
        payee: Option<&'static str>,
    }
    impl From<&Pay> for PayV1 {
        fn from(pay: &Pay) -> Self {
            Self { amount: pay.amount }
        }
    }
    impl From<PayV1> for Pay {
        fn from(old: PayV1) -> Self {
            Self { amount: old.amount, payee: None }
        }
    }
    let stored = PayV1 { amount: 5 }.command_hash();
    assert_eq!(Pay { amount: 5, payee: None }.verdict(&stored), Verdict::Same);
    assert_eq!(Pay { amount: 5, payee: Some("mallory") }.verdict(&stored), Verdict::Different);
    assert_eq!(Pay { amount: 5, payee: Some("mallory") }.hash_at(1), None);
}

/// As above, with a field that only version 1 hashes: today's hash alone would not see the loss.
#[test]
fn a_conversion_that_forgets_a_field_of_the_old_version_replays_nothing() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct PayV1 {
        amount: u64,
        express: bool,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 2, previous = PayV1)]
    struct Pay {
        amount: u64,
        #[idem(until = 1)]
        express: bool,
    }
    impl From<&Pay> for PayV1 {
        fn from(pay: &Pay) -> Self {
            Self { amount: pay.amount, express: false }
        }
    }
    impl From<PayV1> for Pay {
        fn from(old: PayV1) -> Self {
            Self { amount: old.amount, express: old.express }
        }
    }
    let stored = PayV1 { amount: 5, express: false }.command_hash();
    assert_eq!(Pay { amount: 5, express: false }.verdict(&stored), Verdict::Same);
    assert_eq!(Pay { amount: 5, express: true }.verdict(&stored), Verdict::Different);
}

#[test]
fn a_field_that_goes_is_hashed_until_its_last_version() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "ship", version = 1)]
    struct ShipV1 {
        #[idem(default = 1)]
        boxes: u32,
        to: &'static str,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "ship", version = 3, oldest = 1)]
    struct Ship {
        #[idem(until = 1, default = 1)]
        boxes: u32,
        to: &'static str,
        #[idem(until = 2)]
        note: Option<&'static str>,
    }
    let ship = Ship { boxes: 2, to: "home", note: None };
    assert_eq!(ship.hash_at(1), Some(ShipV1 { boxes: 2, to: "home" }.command_hash()));
    assert_eq!(ship.preimage(), r#"["idem/1","ship",3,{"to":"home"}]"#);
    let noted = Ship { note: Some("soon"), boxes: 1, ..ship };
    assert_eq!(noted.preimage_at(2).unwrap(), r#"["idem/1","ship",2,{"note":"soon","to":"home"}]"#);
    assert_eq!(noted.preimage_at(1).unwrap(), r#"["idem/1","ship",1,{"note":"soon","to":"home"}]"#);
    assert_eq!((Ship::OLDEST, noted.hash_at(0), noted.hash_at(4)), (1, None, None));

    let contract = |version| Ship::contract_at(version).unwrap().to_string();
    assert!(contract(1).ends_with("  boxes: integer = \"1\"\n  note?: text\n  to: text\n"), "{}", contract(1));
    assert!(contract(2).ends_with("  boxes: not hashed\n  note?: text\n  to: text\n"), "{}", contract(2));
    assert!(contract(3).ends_with("  boxes: not hashed\n  note: not hashed\n  to: text\n"), "{}", contract(3));
    assert_eq!(Ship::contract_at(3), Some(Ship::contract()));
    assert_eq!((Ship::contract_at(0), Ship::contract_at(4)), (None, None));
}

#[test]
fn a_release_that_still_writes_version_1_is_understood_by_the_one_before() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "pay", version = 1)]
    struct Before {
        amount: u64,
    }
    #[derive(Clone, IdempotentCommand)]
    #[idem(operation = "pay", version = 2, previous = Before, writes = 1)]
    struct Rolling {
        amount: u64,
        payee: Option<&'static str>,
    }
    impl TryFrom<&Rolling> for Before {
        type Error = ();

        fn try_from(pay: &Rolling) -> Result<Self, ()> {
            Ok(Self { amount: pay.amount })
        }
    }
    impl From<Before> for Rolling {
        fn from(old: Before) -> Self {
            Self { amount: old.amount, payee: None }
        }
    }
    let plain = Rolling { amount: 5, payee: None };
    assert_eq!(plain.command_hash(), Before { amount: 5 }.command_hash());
    assert_eq!(plain.preimage(), Before { amount: 5 }.preimage());
    assert_eq!(Before { amount: 5 }.verdict(&plain.command_hash()), Verdict::Same);

    // Version 1 has no words for the payee, so this is written by version 2, and the build before waits.
    let new = Rolling { payee: Some("p"), ..plain.clone() };
    assert_eq!(new.command_hash().version(), 2);
    assert!(new.preimage().starts_with(r#"["idem/1","pay",2,"#), "{}", new.preimage());
    assert_eq!(Before { amount: 5 }.verdict(&new.command_hash()), Verdict::Newer);
    // Both versions of a command are recognised, whichever was written.
    assert_eq!(plain.verdict(&plain.hash_at(2).unwrap()), Verdict::Same);
    assert_eq!(plain.verdict(&plain.hash_at(1).unwrap()), Verdict::Same);
}

/// A command inside itself is hashed as a value, by today's rules.
#[test]
fn a_command_inside_itself_is_described_as_it_is_written() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "plan", version = 2, oldest = 1)]
    struct Plan {
        #[idem(until = 1)]
        old: u8,
        steps: Vec<Plan>,
    }
    let plan = Plan { old: 1, steps: vec![Plan { old: 2, steps: vec![] }] };
    assert_eq!(plan.preimage_at(1).unwrap(), r#"["idem/1","plan",1,{"old":"1","steps":[{"steps":[]}]}]"#);
    let contract = Plan::contract_at(1).unwrap().to_string();
    let described =
        "command: object\n  old: integer\n  steps: list of #1 object\n    old: not hashed\n    steps: list of #1\n";
    assert!(contract.ends_with(described), "{contract}");
}

#[test]
fn versions_of_generic_commands() {
    use std::borrow::Cow;

    #[derive(IdempotentCommand)]
    #[idem(operation = "say", version = 1)]
    struct SayV1<'a, T> {
        text: Cow<'a, str>,
        more: T,
    }
    #[derive(IdempotentCommand)]
    #[idem(operation = "say", version = 2, previous = SayV1<'a, T>)]
    struct Say<'a, T>
    where
        T: Clone,
    {
        words: Cow<'a, str>,
        more: T,
    }
    impl<'a, T: Clone> From<&Say<'a, T>> for SayV1<'a, T> {
        fn from(say: &Say<'a, T>) -> Self {
            Self { text: say.words.clone(), more: say.more.clone() }
        }
    }
    impl<'a, T: Clone> From<SayV1<'a, T>> for Say<'a, T> {
        fn from(old: SayV1<'a, T>) -> Self {
            Self { words: old.text, more: old.more }
        }
    }
    let words = String::from("hello");
    let say = Say { words: Cow::Borrowed(&words), more: 1u8 };
    assert_eq!(say.hash_at(1), Some(SayV1 { text: "hello".into(), more: 1u64 }.command_hash()));
}

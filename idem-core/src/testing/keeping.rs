//! What is kept beside the records: contracts, settings, the audit.

use crate::record::OwnerToken;
use crate::store::{AuditEntry, Store};
use crate::testing::{Case, LONG, an_audit, at_once};

/// Contract texts are kept byte by byte, in order, for one version of one operation.
pub async fn contracts_are_kept_in_order(store: &dyn Store) {
    let operation = fresh();
    assert_eq!(store.contracts(&operation, 1).await.expect("no contract"), [""; 0]);
    let texts = ["operation: pay\n  \u{1f4b6}\n", "", "operation: pay\n  \u{1f4b6}"];
    for (number, text) in (0..).zip(texts) {
        assert!(store.add_contract(&operation, 1, number, text).await.expect("added"));
    }
    assert!(store.add_contract(&operation, 2, 0, "another").await.expect("added"));
    assert_eq!(store.contracts(&operation, 1).await.expect("contracts"), texts);
    assert_eq!(store.contracts(&operation, 2).await.expect("contracts"), ["another"]);
    assert_eq!(store.contracts(&fresh(), 1).await.expect("no contract"), [""; 0]);
}

/// A place that is taken stays as it is, and none is left out.
pub async fn a_contract_has_one_place(store: &dyn Store) {
    let operation = fresh();
    assert!(!store.add_contract(&operation, 1, 1, "too early").await.expect("refused"));
    assert!(store.add_contract(&operation, 1, 0, "first").await.expect("added"));
    for number in [0, 2] {
        assert!(!store.add_contract(&operation, 1, number, "other").await.expect("refused"));
    }
    assert_eq!(store.contracts(&operation, 1).await.expect("contracts"), ["first"]);
}

/// Of sixteen nodes that start at once one adds its contract; the others must compare again.
pub async fn of_rivals_one_adds_a_contract(store: &dyn Store) {
    let operation = fresh();
    let added = at_once(async || store.add_contract(&operation, 1, 0, &fresh()).await.expect("an answer")).await;
    assert_eq!(added.into_iter().filter(|&added| added).count(), 1);
    assert_eq!(store.contracts(&operation, 1).await.expect("contracts").len(), 1);
}

/// The first value of a setting is its value, for all that ask at once too.
pub async fn a_setting_is_settled_once(store: &dyn Store) {
    let name = fresh();
    let values = at_once(async || store.settle_setting(&name, &fresh()).await.expect("a value")).await;
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    assert_eq!(store.settle_setting(&name, "another").await.expect("a value"), values[0]);
    let empty = fresh();
    assert_eq!(store.settle_setting(&empty, "").await.expect("a value"), "");
    assert_eq!(store.settle_setting(&empty, "another").await.expect("a value"), "");
}

/// Every setting is shown with the value that it was settled to, and none that was never settled.
pub async fn settings_are_listed_by_name(store: &dyn Store) {
    let [first, second, never] = [fresh(), fresh(), fresh()];
    for name in [&first, &second] {
        store.settle_setting(name, &format!("value of {name}\u{1f4b6}")).await.expect("a value");
        store.settle_setting(name, "another").await.expect("a value");
    }
    let settings = store.settings().await.expect("the settings");
    assert!(settings.is_sorted_by_key(|(name, _)| name), "{settings:?}");
    let value = |name: &str| settings.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    assert_eq!(value(&first), Some(format!("value of {first}\u{1f4b6}")));
    assert_eq!(value(&second), Some(format!("value of {second}\u{1f4b6}")));
    assert_eq!(value(&never), None);
}

/// A worker's sign of life is seen, and dated by the store.
pub async fn a_sign_of_life_is_seen(store: &dyn Store) {
    store.sign_of_life().await.expect("a sign");
    store.sign_of_life().await.expect("another sign");
    let silence = store.silence().await.expect("an answer").expect("a sign was given");
    assert!(silence < LONG, "{silence:?}");
}

/// The audit keeps what was said, in order, about the record that it was said of.
pub async fn the_audit_is_kept_in_order(store: &dyn Store) {
    let [case, other] = [Case::new(store), Case::new(store)];
    case.claim(LONG).await;
    let first = an_audit(&case.scope);
    let second = AuditEntry { action: "override".into(), actor: "grace".into(), ..first.clone() };
    let about_all = AuditEntry { scope: None, ..first.clone() };
    for entry in [&first, &about_all, &second, &first] {
        store.audit(entry).await.expect("a row");
    }
    assert_eq!(case.audited().await, [first.clone(), second, first]);
    assert_eq!(other.audited().await, []);
}

fn fresh() -> String {
    format!("name-{:x}", u128::from_be_bytes(*OwnerToken::random().as_bytes()))
}

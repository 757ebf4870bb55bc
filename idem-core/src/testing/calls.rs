//! Announced calls: what was promised, when it was opened first, and how it ended.

use std::time::Duration;

use crate::calls::{CallClass, CallRecord, CallState};
use crate::store::{ClosedCall, Finish, NewCall, Step, Store};
use crate::testing::{Case, LONG, MOMENT, a_step, applied, completed, ends, finish, stored};

/// T3: name, class, key and the date of the announcement.
pub async fn an_announcement_is_kept(store: &dyn Store) {
    let classes = [
        CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) },
        CallClass::QueryOnly { quiescence: Duration::from_millis(90_001) },
        CallClass::Neither,
    ];
    for class in classes {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        let NewCall { name, key, .. } = case.new_call("charge");
        let open = NewCall { name: name.clone(), class, key: key.clone() };
        let now = case.step(&owner, Step { open: Some(open), ..a_step() }).await;
        let expected = CallRecord { name, class, key, state: CallState::Open, opened_at: now };
        assert_eq!(case.record().await.calls, [expected]);
    }
}

/// In the order of their first announcement, however they are named.
pub async fn calls_keep_their_order(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    let names = ["zeta", "charge", "alpha", "notify", "beta"];
    for name in names {
        case.step(&owner, case.announce(name)).await;
    }
    case.step(&owner, closing("zeta", CallState::Withdrawn)).await;
    case.step(&owner, case.announce("zeta")).await;
    let calls = case.record().await.calls;
    assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), names);
}

/// A provider's retention counts from its first call: a re-run that announces it again moves nothing.
pub async fn a_call_opened_twice_keeps_its_date(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    let opened_at = case.step(&owner, case.announce("charge")).await;
    case.time_passes(opened_at).await;
    let again = NewCall { class: CallClass::Neither, ..case.new_call("charge") };
    case.step(&owner, Step { open: Some(again), ..a_step() }).await;
    let calls = case.record().await.calls;
    assert_eq!((calls.len(), calls[0].opened_at, calls[0].class), (1, opened_at, case.new_call("charge").class));
}

/// An announcement whose answer was lost, sent again: written once more, announced once.
pub async fn a_step_sent_again_announces_once(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    let step = Step { closed: vec![applied("charge", "receipt")], ..case.announce("notify") };
    stored(store.step(&owner, &step).await);
    let before = case.record().await;
    stored(store.step(&owner, &step).await);
    assert_eq!(case.record().await.calls, before.calls);
}

/// What never left is announced anew, with a new date and the class of today.
pub async fn a_withdrawn_call_opens_again(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    let opened_at = case.step(&owner, case.announce("charge")).await;
    case.step(&owner, closing("charge", CallState::Withdrawn)).await;
    assert_eq!(case.record().await.calls[0].state, CallState::Withdrawn);
    case.time_passes(opened_at).await;
    let again = NewCall { class: CallClass::Neither, ..case.new_call("charge") };
    let now = case.step(&owner, Step { open: Some(again.clone()), ..a_step() }).await;
    let expected = CallRecord {
        name: again.name,
        class: CallClass::Neither,
        key: again.key,
        state: CallState::Open,
        opened_at: now,
    };
    assert_eq!(case.record().await.calls, [expected]);
    assert!(opened_at < now);
}

/// A call that is done is neither opened again nor done otherwise.
pub async fn a_closed_call_stays_closed(store: &dyn Store) {
    for first in [CallState::Applied(b"first".to_vec()), CallState::Rejected(b"first".to_vec())] {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.step(&owner, case.announce("charge")).await;
        case.step(&owner, closing("charge", first.clone())).await;
        case.step(&owner, case.announce("charge")).await;
        for second in [CallState::Applied(b"2".to_vec()), CallState::Rejected(b"2".to_vec()), CallState::Withdrawn] {
            case.step(&owner, closing("charge", second)).await;
        }
        assert_eq!(case.record().await.calls[0].state, first);
    }
}

/// An outcome touches the call that it names, and a name that was never announced touches none.
pub async fn an_outcome_closes_only_its_call(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    for name in ["charge", "Charge", "charge_2"] {
        case.step(&owner, case.announce(name)).await;
    }
    let outcomes = vec![applied("never", "0"), applied("charge", "1")];
    case.step(&owner, Step { closed: outcomes, ..a_step() }).await;
    let states: Vec<_> = case.record().await.calls.into_iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::Applied(b"1".to_vec()), CallState::Open, CallState::Open]);
}

/// Outcomes are the application's bytes, whatever they are.
pub async fn outcomes_are_kept_byte_by_byte(store: &dyn Store) {
    let every: Vec<u8> = (0..=255).collect();
    let long = every.repeat(256);
    for bytes in [Vec::new(), b"\0".to_vec(), every, long, br#"{"b":1,"a":2,"a":3,"n":1e2}"#.to_vec()] {
        for state in [CallState::Applied(bytes.clone()), CallState::Rejected(bytes.clone())] {
            let case = Case::new(store);
            let (owner, _) = case.claim(LONG).await;
            case.step(&owner, case.announce("charge")).await;
            case.step(&owner, closing("charge", state.clone())).await;
            assert_eq!(case.record().await.calls[0].state, state);
        }
    }
}

/// T4 to T7: outcomes that were not written yet ride on the last write.
pub async fn a_finish_keeps_outcomes(store: &dyn Store) {
    for end in ends() {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.step(&owner, case.announce("charge")).await;
        case.step(&owner, case.announce("notify")).await;
        let closed = vec![applied("charge", "receipt")];
        stored(store.finish(&owner, &Finish { closed, ..finish(end) }).await);
        let states: Vec<_> = case.record().await.calls.into_iter().map(|call| call.state).collect();
        assert_eq!(states, [CallState::Applied(b"receipt".to_vec()), CallState::Open]);
    }
}

/// Outcomes first, then the announcement: a call withdrawn and announced by one step is open.
pub async fn a_call_closed_and_opened_in_one_step_is_open(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    let withdrawn = ClosedCall { name: "charge".into(), state: CallState::Withdrawn };
    case.step(&owner, Step { closed: vec![withdrawn], ..case.announce("charge") }).await;
    assert_eq!(case.record().await.calls[0].state, CallState::Open);
    // Done is done, though the same step announces it.
    case.step(&owner, Step { closed: vec![applied("charge", "receipt")], ..case.announce("charge") }).await;
    assert_eq!(case.record().await.calls[0].state, CallState::Applied(b"receipt".to_vec()));
}

/// The next owner sees what the last one announced and kept.
pub async fn calls_survive_a_take_over(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    let step = Step { closed: vec![applied("charge", "receipt")], lease: MOMENT, ..case.announce("notify") };
    case.step(&owner, step).await;
    case.time_comes().await;
    let before = case.record().await.calls;
    let next = case.take_over().await;
    assert_eq!(case.record().await.calls, before);
    case.step(&next, closing("notify", CallState::Applied(b"sent".to_vec()))).await;
    case.finish(&next, completed()).await;
    let states: Vec<_> = case.record().await.calls.into_iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::Applied(b"receipt".to_vec()), CallState::Applied(b"sent".to_vec())]);
}

/// A late owner's announcement and outcomes leave no trace.
pub async fn a_refused_write_changes_no_call(store: &dyn Store) {
    let case = Case::new(store);
    let (late, _) = case.claim(LONG).await;
    case.step(&late, Step { lease: MOMENT, ..case.announce("charge") }).await;
    case.time_comes().await;
    let owner = case.take_over().await;
    case.writes_nothing(&late).await;
    case.step(&owner, case.announce("late")).await;
    let states: Vec<_> = case.record().await.calls.into_iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::Open, CallState::Open]);
}

/// A call of the same name in another operation, or of another tenant, is another call.
pub async fn records_do_not_share_calls(store: &dyn Store) {
    let payment = Case::new(store);
    let refund = Case::of(store, payment.scope.tenant().clone(), "create_refund", "key-1");
    let stranger = Case::new(store);
    let quiet = Case::new(store);
    quiet.claim(LONG).await;
    for case in [&payment, &refund, &stranger] {
        let (owner, _) = case.claim(LONG).await;
        case.step(&owner, case.announce("charge")).await;
    }
    let owner = payment.record().await.ownership();
    payment.step(&owner, closing("charge", CallState::Applied(b"receipt".to_vec()))).await;
    for case in [&refund, &stranger] {
        let calls = case.record().await.calls;
        assert_eq!((calls.len(), &calls[0].state), (1, &CallState::Open));
    }
    assert_eq!(quiet.record().await.calls, []);
}

fn closing(name: &str, state: CallState) -> Step {
    Step { closed: vec![ClosedCall { name: name.into(), state }], ..a_step() }
}

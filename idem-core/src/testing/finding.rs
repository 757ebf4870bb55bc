//! Which records a worker has to look at, and what is learned about them from outside.

use std::time::Duration;

use crate::calls::{CallState, DownstreamKey};
use crate::record::{Record, Status};
use crate::store::{End, Evidence, Store, Tended};
use crate::testing::{Case, KEEP, LONG, MOMENT, applied, completed, ends, finish, stored, written};

/// In progress past its lease, failed with a call left open, unknown and due: those, as they stand.
pub async fn what_nobody_cares_for_is_due(store: &dyn Store) {
    let abandoned = Case::new(store);
    abandoned.overrun().await;
    let failed = Case::new(store);
    failed_with_a_call(&failed, Duration::ZERO).await;
    let unknown = Case::new(store);
    unknown.unknown("charge").await;
    let asked = Case::new(store);
    let seen = asked.unknown("charge").await;
    written(store.take_to_ask(&crate::store::TakeOver { lease: MOMENT, ..asked.take(&seen) }).await);
    asked.time_comes().await;
    for case in [abandoned, failed, unknown, asked] {
        assert_eq!(due(&case, Duration::ZERO).await, Some(case.record().await));
    }
}

/// A live lease, a settled record, a failed one without an open call, and what is not due yet: those are not.
pub async fn what_is_cared_for_or_settled_is_not_due(store: &dyn Store) {
    let running = Case::new(store);
    running.claim(LONG).await;
    let later = Case::new(store);
    failed_with_a_call(&later, LONG).await;
    let asked_later = Case::new(store);
    asked_later.ended(End::Unknown { ask_in: LONG }).await;
    let asking = Case::new(store);
    asking.unknown("charge").await;
    asking.take_to_ask().await;
    let closed = Case::new(store);
    let (owner, _) = closed.claim(LONG).await;
    closed.step(&owner, closed.announce("charge")).await;
    let [completed, replayable, retryable, _] = ends();
    let withdrawn = crate::store::Finish { closed: vec![applied("charge", "receipt")], ..finish(retryable.clone()) };
    stored(store.finish(&owner, &withdrawn).await);
    let mut cases = vec![running, later, asked_later, asking, closed];
    for end in [completed, replayable, retryable] {
        let case = Case::new(store);
        case.ended(end).await;
        cases.push(case);
    }
    for case in cases {
        assert_eq!(due(&case, Duration::ZERO).await, None, "{:?}", case.record().await);
    }
}

/// Clients have their time to come back; nobody comes back for an unknown record.
pub async fn a_grace_is_left_to_clients(store: &dyn Store) {
    let abandoned = Case::new(store);
    abandoned.overrun().await;
    let failed = Case::new(store);
    failed_with_a_call(&failed, Duration::ZERO).await;
    let unknown = Case::new(store);
    unknown.unknown("charge").await;
    assert_eq!(due(&abandoned, LONG).await, None);
    assert_eq!(due(&failed, LONG).await, None);
    assert!(due(&unknown, LONG).await.is_some());
}

/// Pages have no more than was asked for, and together everything once, those first that wait longest.
pub async fn due_records_come_in_pages_and_in_order(store: &dyn Store) {
    let mut cases = Vec::new();
    for number in 0..7 {
        let case = Case::new(store);
        case.overrun().await;
        if number % 2 == 0 {
            // All of them since one moment, so that only their names tell them apart.
            written(store.tend(&crate::store::Seen::of(&case.record().await), &STRANDED).await);
        }
        cases.push(case);
    }
    let own = |record: &Record| cases.iter().any(|case| case.scope == record.scope);
    for limit in [1, 3, 100] {
        let records: Vec<_> = pages(store, Duration::ZERO, limit).await.into_iter().filter(own).collect();
        let places: Vec<_> =
            records.iter().map(|record| (crate::transition::due_at(record), record.scope.clone())).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places.len(), cases.len());
    }
    assert!(store.due(Duration::ZERO, None, 0).await.expect("no record").is_empty());
}

/// What was learned is kept byte by byte, in order, for its record alone, and may be learned again.
pub async fn evidence_is_kept(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.step(&owner, case.announce("notify")).await;
    let other = Case::new(store);
    other.unknown("charge").await;
    let states = [CallState::Applied((0..=255).collect()), CallState::Rejected(Vec::new()), CallState::Withdrawn];
    let mut expected = Vec::new();
    for name in ["notify", "charge"] {
        for state in &states {
            let key = case.new_call(name).key;
            let evidence = Evidence { key, source: "webhook \u{1f4b6}".into(), state: state.clone() };
            assert_eq!(store.learn(&evidence).await.expect("learned"), Some(case.scope.clone()));
            expected.push(evidence);
        }
    }
    assert_eq!(case.learned().await, expected);
    assert_eq!(other.learned().await, []);
    // It is about calls, and closes none: only who owns the record does.
    assert!(case.record().await.calls.iter().all(crate::calls::CallRecord::is_open));
}

/// Evidence about a call that nobody announced belongs to no record, and is not kept.
pub async fn evidence_about_nothing_is_not_kept(store: &dyn Store) {
    let case = Case::new(store);
    case.claim(LONG).await;
    let evidence = evidence(&case);
    assert_eq!(store.learn(&evidence).await.expect("nothing learned"), None);
    let unheard_of = Evidence { key: DownstreamKey::from_stored("charge_'; --".into()), ..evidence };
    assert_eq!(store.learn(&unheard_of).await.expect("nothing learned"), None);
    assert_eq!(case.learned().await, []);
}

/// A record that waits to be asked is due at once, with all else as it was.
pub async fn evidence_makes_an_unknown_record_due(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.finish(&owner, End::Unknown { ask_in: LONG }).await;
    let before = case.record().await;
    assert_eq!(due(&case, Duration::ZERO).await, None);
    store.learn(&evidence(&case)).await.expect("learned");
    let after = case.record().await;
    assert_eq!(due(&case, Duration::ZERO).await.as_ref(), Some(&after));
    assert_eq!(after.revision, before.revision.next());
    assert_eq!(Record { status: before.status.clone(), revision: before.revision, ..after }, before);
    case.take_to_ask().await;
}

/// Any other record stays as it is: it is read when its time comes.
pub async fn evidence_changes_no_other_record(store: &dyn Store) {
    let running = Case::new(store);
    let (owner, _) = running.claim(LONG).await;
    running.step(&owner, running.announce("charge")).await;
    let done = Case::new(store);
    let (owner, _) = done.claim(LONG).await;
    done.step(&owner, done.announce("charge")).await;
    done.finish(&owner, completed()).await;
    let failed = Case::new(store);
    failed_with_a_call(&failed, LONG).await;
    let due_already = Case::new(store);
    due_already.unknown("charge").await;
    for case in [running, done, failed, due_already] {
        let before = case.record().await;
        assert_eq!(store.learn(&evidence(&case)).await.expect("learned"), Some(case.scope.clone()));
        assert_eq!(case.record().await, before);
        assert_eq!(case.learned().await, [evidence(&case)]);
    }
}

/// A worker that asks keeps its lease, and its answer counts, whatever is learned meanwhile.
pub async fn evidence_disturbs_nobody_who_asks(store: &dyn Store) {
    let case = Case::new(store);
    case.unknown("charge").await;
    let worker = case.take_to_ask().await;
    store.learn(&evidence(&case)).await.expect("learned");
    let Status::Unknown { locked_until: Some(_), .. } = case.record().await.status else { panic!("it is asked about") };
    case.answer(&worker, super::answered(crate::store::AnsweredEnd::Ended(completed()))).await;
}

/// A look shows what a claim shows, and makes no record.
pub async fn a_look_changes_nothing(store: &dyn Store) {
    let case = Case::new(store);
    assert_eq!(case.looked().await, None);
    assert_eq!(case.looked().await, None);
    let (owner, now) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    let found = store.look(&case.scope).await.expect("a look").expect("a record");
    assert!(now <= found.now);
    assert_eq!(Some(found.record), case.looked().await);
    assert_eq!(case.looked().await, Some(case.record().await));
}

fn evidence(case: &Case<'_>) -> Evidence {
    let key = case.new_call("charge").key;
    Evidence { key, source: "webhook".into(), state: CallState::Applied(b"receipt".to_vec()) }
}

async fn failed_with_a_call(case: &Case<'_>, retry_in: Duration) {
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.finish(&owner, End::FailedRetryable { retry_in, keep: KEEP }).await;
}

/// This record, if a worker has to look at it.
async fn due(case: &Case<'_>, grace: Duration) -> Option<Record> {
    pages(case.store, grace, 50).await.into_iter().find(|record| record.scope == case.scope)
}

async fn pages(store: &dyn Store, grace: Duration, limit: u32) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    loop {
        let page = store.due(grace, all.last(), limit).await.expect("a page");
        assert!(page.len() <= limit as usize);
        let Some(first) = page.first() else { return all };
        let place = |record: &Record| (crate::transition::due_at(record), record.scope.clone());
        // Or this would go round for ever.
        assert!(all.last().is_none_or(|last| place(last) < place(&first.record)), "a page begins before its last end");
        all.extend(page.into_iter().map(|found| found.record));
    }
}

const STRANDED: Tended = Tended::Stranded { ask_in: Duration::ZERO };

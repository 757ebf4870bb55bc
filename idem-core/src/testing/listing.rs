//! The list of what is not settled, for a person.

use std::time::{Duration, SystemTime};

use crate::record::{Record, Status};
use crate::store::{End, Mark, Seen, Store, Tended};
use crate::testing::{Case, KEEP, LONG, applied, ends, finish, stored, written};
use crate::transition::due_at;

/// In progress, with a live lease or after it, after a take-over too; failed with a call left open, due or not; unknown,
/// due or not, asked about right now, parked: all of them, as they stand.
pub async fn what_is_not_settled_is_listed(store: &dyn Store) {
    let running = Case::new(store);
    running.claim(LONG).await;
    let abandoned = Case::new(store);
    abandoned.overrun().await;
    let taken_over = Case::new(store);
    taken_over.overrun().await;
    taken_over.take_over().await;
    let failed = Case::new(store);
    failed_with_a_call(&failed, Duration::ZERO).await;
    let failed_lately = Case::new(store);
    failed_with_a_call(&failed_lately, LONG).await;
    let unknown = Case::new(store);
    unknown.unknown("charge").await;
    let asked_later = Case::new(store);
    asked_later.ended(End::Unknown { ask_in: LONG }).await;
    let asking = Case::new(store);
    asking.unknown("charge").await;
    asking.take_to_ask().await;
    let parked = Case::new(store);
    let seen = parked.unknown("charge").await;
    written(store.tend(&Seen::of(&seen), &Tended::Parked { ask_in: LONG }).await);
    let parked_retryable = Case::new(store);
    failed_with_a_call(&parked_retryable, Duration::ZERO).await;
    let seen = parked_retryable.record().await;
    written(store.tend(&Seen::of(&seen), &Tended::Parked { ask_in: LONG }).await);
    let cases =
        [running, abandoned, taken_over, failed, failed_lately, unknown, asked_later, asking, parked, parked_retryable];
    let listed = all(store, 50).await;
    for case in cases {
        let of_case: Vec<_> = listed.iter().filter(|record| record.scope == case.scope).collect();
        assert_eq!(of_case, [&case.record().await]);
    }
}

/// Completed, refused, failed without an open call: with a call that was made before, too. Nor is what is not there.
pub async fn what_is_settled_is_not_listed(store: &dyn Store) {
    let mut cases = vec![Case::new(store)];
    let [completed, replayable, retryable, _] = ends();
    for end in [completed, replayable, retryable.clone()] {
        let case = Case::new(store);
        case.ended(end.clone()).await;
        cases.push(case);
        let with_a_call = Case::new(store);
        let (owner, _) = with_a_call.claim(LONG).await;
        with_a_call.step(&owner, with_a_call.announce("charge")).await;
        let made = crate::store::Finish { closed: vec![applied("charge", "receipt")], ..finish(end) };
        stored(store.finish(&owner, &made).await);
        cases.push(with_a_call);
    }
    let after_a_take_over = Case::new(store);
    after_a_take_over.overrun().await;
    let owner = after_a_take_over.take_over().await;
    after_a_take_over.finish(&owner, super::completed()).await;
    cases.push(after_a_take_over);
    let listed = all(store, 50).await;
    for case in cases {
        assert!(listed.iter().all(|record| record.scope != case.scope), "{:?}", case.looked().await);
    }
}

/// Pages have no more than was asked for, and together everything once, in the order in which somebody has to look.
pub async fn the_unsettled_come_in_pages_and_in_order(store: &dyn Store) {
    let mut cases = Vec::new();
    for number in 0..9 {
        let case = Case::new(store);
        match number % 3 {
            0 => drop(case.claim(LONG).await),
            1 => drop(case.unknown("charge").await),
            _ => drop(case.overrun().await),
        }
        cases.push(case);
    }
    let own = |record: &Record| cases.iter().any(|case| case.scope == record.scope);
    for limit in [1, 2, 100] {
        let places: Vec<_> = all(store, limit).await.iter().filter(|record| own(record)).map(mark).collect();
        let places: Vec<_> = places.into_iter().map(|mark| (mark.at, mark.scope)).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places.len(), cases.len(), "in pages of {limit}");
    }
    assert!(store.unsettled(None, 0).await.expect("no record").is_empty());
    let last =
        Mark { at: SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799), scope: cases[0].scope.clone() };
    assert!(store.unsettled(Some(&last), 10).await.expect("no record").is_empty());
}

/// Who only looks disturbs nobody: no record changes, and every owner writes on.
pub async fn a_list_changes_nothing(store: &dyn Store) {
    let running = Case::new(store);
    let (owner, _) = running.claim(LONG).await;
    let unknown = Case::new(store);
    unknown.unknown("charge").await;
    let before = (running.record().await, unknown.record().await);
    all(store, 3).await;
    assert_eq!((running.record().await, unknown.record().await), before);
    running.finish(&owner, super::completed()).await;
    assert!(matches!(running.record().await.status, Status::Completed(_)));
    unknown.take_to_ask().await;
}

/// Of each kind at least as long as any of them waits: abandoned, unknown, parked.
pub async fn the_longest_waits_are_told(store: &dyn Store) {
    let [abandoned, unknown, parked] = [Case::new(store), Case::new(store), Case::new(store)];
    abandoned.overrun().await;
    unknown.unknown("charge").await;
    let seen = parked.unknown("charge").await;
    written(store.tend(&Seen::of(&seen), &Tended::Parked { ask_in: LONG }).await);
    parked.time_passes(parked.found().await.now).await;
    store.due(Duration::ZERO, None, 1).await.expect("a page");
    let mut waits = Vec::new();
    for case in [&abandoned, &unknown, &parked] {
        let found = case.found().await;
        waits.push(found.now.duration_since(found.record.created_at).expect("time has passed"));
    }
    let told = store.oldest().await.expect("an answer");
    assert!(waits[0] <= told.abandoned, "{waits:?} {told:?}");
    assert!(waits[1] <= told.unknown && waits[2] <= told.parked, "{waits:?} {told:?}");
    assert!(waits.iter().all(|waits| !waits.is_zero()), "{waits:?}");
}

async fn failed_with_a_call(case: &Case<'_>, retry_in: Duration) {
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.finish(&owner, End::FailedRetryable { retry_in, keep: KEEP }).await;
}

async fn all(store: &dyn Store, limit: u32) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    loop {
        let after = all.last().map(mark);
        let page = store.unsettled(after.as_ref(), limit).await.expect("a page");
        assert!(page.len() <= limit as usize);
        if page.is_empty() {
            return all;
        }
        assert!(page.iter().all(|found| found.now > SystemTime::UNIX_EPOCH));
        all.extend(page.into_iter().map(|found| found.record));
    }
}

fn mark(record: &Record) -> Mark {
    Mark { at: due_at(record).expect("it is not settled"), scope: record.scope.clone() }
}

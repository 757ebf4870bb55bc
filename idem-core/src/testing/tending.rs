//! T9, T9w, T9f and the parking of T13: what becomes of a record that nobody runs.

use std::time::Duration;

use crate::record::{Record, Status, StatusName};
use crate::store::{End, Guarded, Seen, Step, Store, Tended};
use crate::testing::{Case, KEEP, LONG, MOMENT, a_step, at_once, changed, ends, hash, stored, tendings, written};

/// T9: nobody runs any more; fence, owner, open call and all else stay for recovery to see.
pub async fn a_lease_that_is_over_is_stranded(store: &dyn Store) {
    let case = Case::new(store);
    let before = abandoned(&case).await;
    let now = written(store.tend(&Seen::of(&before), &STRANDED).await);
    let status = Status::Unknown { next_ask_at: now + LONG, locked_until: None, parked_at: None };
    assert_eq!(case.record().await, Record { status, revision: before.revision.next(), ..before });
}

/// T9w: the next client may run it, or its window ends.
pub async fn a_lease_that_is_over_is_released(store: &dyn Store) {
    let case = Case::new(store);
    let before = abandoned(&case).await;
    let released = Tended::Released { retry_in: MOMENT, keep: KEEP };
    let now = written(store.tend(&Seen::of(&before), &released).await);
    let (expires_at, purge_at) = (now + LONG, now + LONG + LONG);
    let status = Status::FailedRetryable { next_attempt_at: now + MOMENT, expires_at, purge_at, parked_at: None };
    assert_eq!(case.record().await, Record { status, revision: before.revision.next(), ..before });
    case.time_comes().await;
    case.take_over().await;
}

/// T9: nobody can be asked, so a person is called; the record is unknown, and dated.
pub async fn a_lease_that_is_over_is_parked(store: &dyn Store) {
    let case = Case::new(store);
    let before = abandoned(&case).await;
    let now = written(store.tend(&Seen::of(&before), &PARKED).await);
    let status = Status::Unknown { next_ask_at: now + LONG, locked_until: None, parked_at: Some(now) };
    assert_eq!(case.record().await, Record { status, revision: before.revision.next(), ..before });
}

/// T9f: a failed record with a call left open is asked about once no client came.
pub async fn a_failed_record_is_stranded(store: &dyn Store) {
    let case = Case::new(store);
    let before = failed_with_a_call(&case).await;
    let now = written(store.tend(&Seen::of(&before), &STRANDED).await);
    let status = Status::Unknown { next_ask_at: now + LONG, locked_until: None, parked_at: None };
    assert_eq!(case.record().await, Record { status, revision: before.revision.next(), ..before });
}

/// T9f: or a person is called; it stays failed, with its times, and is parked since the first time.
pub async fn a_failed_record_is_parked(store: &dyn Store) {
    let case = Case::new(store);
    let before = failed_with_a_call(&case).await;
    let now = written(store.tend(&Seen::of(&before), &PARKED).await);
    let Status::FailedRetryable { next_attempt_at, expires_at, purge_at, .. } = before.status else {
        panic!("it is failed")
    };
    let status = Status::FailedRetryable { next_attempt_at, expires_at, purge_at, parked_at: Some(now) };
    let parked = case.record().await;
    assert_eq!(parked, Record { status: status.clone(), revision: before.revision.next(), ..before });
    assert!(parked.is_parked());
    case.time_passes(now).await;
    written(store.tend(&Seen::of(&parked), &PARKED).await);
    assert_eq!(case.record().await.status, status);
}

/// T13: an unknown record is parked, and stays parked since the first time.
pub async fn an_unknown_record_is_parked(store: &dyn Store) {
    let case = Case::new(store);
    let before = case.unknown("charge").await;
    let parked_at = written(store.tend(&Seen::of(&before), &PARKED).await);
    let parked = case.record().await;
    let status = Status::Unknown { next_ask_at: parked_at + LONG, locked_until: None, parked_at: Some(parked_at) };
    assert_eq!(parked, Record { status, revision: before.revision.next(), ..before });
    case.time_passes(parked_at).await;
    let now = written(store.tend(&Seen::of(&parked), &PARKED).await);
    let status = Status::Unknown { next_ask_at: now + LONG, locked_until: None, parked_at: Some(parked_at) };
    assert_eq!(case.record().await.status, status);
}

/// Who asks right now is not disturbed: while its lease lasts its record is not parked.
pub async fn a_record_that_is_asked_about_is_not_parked(store: &dyn Store) {
    let case = Case::new(store);
    case.unknown("charge").await;
    let worker = case.take_to_ask().await;
    let before = case.record().await;
    assert_eq!(changed(store.tend(&Seen::of(&before), &PARKED).await), Some(before));
    assert_eq!(case.record().await.ownership(), worker);
}

/// While the lease lasts nothing becomes of a record but by its owner.
pub async fn a_live_lease_is_not_tended(store: &dyn Store) {
    let case = Case::new(store);
    case.claim(LONG).await;
    let before = case.record().await;
    for to in tendings() {
        assert_eq!(changed(store.tend(&Seen::of(&before), &to).await), Some(before.clone()), "{to:?}");
    }
    assert_eq!(case.record().await, before);
}

/// The seen revision, fence and hash guard as they guard a take-over: an announcement made since then wins.
pub async fn a_record_that_was_written_since_is_not_tended(store: &dyn Store) {
    let case = Case::new(store);
    let owner = case.overrun().await;
    let seen = Seen::of(&case.record().await);
    case.step(&owner, Step { lease: Duration::ZERO, ..case.announce("charge") }).await;
    let before = case.record().await;
    let now = Seen::of(&before);
    let other_fence = Seen { fence: now.fence.next(), ..now.clone() };
    let other_command = Seen { hash: hash(2), ..now };
    for seen in [seen, other_fence, other_command] {
        for to in tendings() {
            assert_eq!(changed(store.tend(&seen, &to).await), Some(before.clone()), "{to:?}");
        }
    }
    assert_eq!(case.record().await, before);
}

/// A status that was not seen guards, and from each status only what the protocol has goes on.
pub async fn only_what_the_protocol_has_becomes_of_a_record(store: &dyn Store) {
    for end in ends() {
        let case = Case::new(store);
        case.ended(end).await;
        let before = case.record().await;
        for to in tendings() {
            let allowed = match before.status.name() {
                StatusName::FailedRetryable => !matches!(to, Tended::Released { .. }),
                StatusName::Unknown => matches!(to, Tended::Parked { .. }),
                _ => false,
            };
            if !allowed {
                assert_eq!(changed(store.tend(&Seen::of(&before), &to).await), Some(before.clone()), "{to:?}");
            }
            for status in StatusName::ALL.into_iter().filter(|&status| status != before.status.name()) {
                let seen = Seen { status, ..Seen::of(&before) };
                assert_eq!(changed(store.tend(&seen, &to).await), Some(before.clone()), "{to:?}, seen as {status}");
            }
        }
        assert_eq!(case.record().await, before);
    }
}

/// Of sixteen that tend one does.
pub async fn of_rivals_one_tends(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let seen = Seen::of(&case.record().await);
    let tended = at_once(async || store.tend(&seen, &STRANDED).await).await;
    assert_eq!(tended.iter().filter(|tended| matches!(tended, Ok(Guarded::Written { .. }))).count(), 1);
    assert_eq!(case.record().await.revision, seen.revision.next());
}

/// A worker that releases and a client that takes over, at the same time: one of them.
pub async fn of_a_worker_and_a_client_one_wins(store: &dyn Store) {
    for _ in 0..8 {
        let case = Case::new(store);
        case.overrun().await;
        let seen = case.record().await;
        let take = case.take(&seen);
        let (seen, released) = (Seen::of(&seen), tendings()[0]);
        let (tended, taken) = futures_util::future::join(store.tend(&seen, &released), store.take_over(&take)).await;
        let status = case.record().await.status.name();
        match (tended, taken) {
            (Ok(Guarded::Written { .. }), Ok(Guarded::Changed(Some(_)))) => {
                assert_eq!(status, StatusName::FailedRetryable);
            }
            (Ok(Guarded::Changed(Some(_))), Ok(Guarded::Written { .. })) => assert_eq!(status, StatusName::InProgress),
            both => panic!("{both:?}"),
        }
    }
}

/// An owner that comes back after its record was given up changes nothing, though its fence and token still stand.
pub async fn after_tending_the_late_owner_writes_nothing(store: &dyn Store) {
    for to in tendings() {
        let case = Case::new(store);
        let before = abandoned(&case).await;
        written(store.tend(&Seen::of(&before), &to).await);
        case.writes_nothing(&before.ownership()).await;
    }
}

/// A record in progress with an open call, a resource and a checkpoint, whose lease is over.
async fn abandoned(case: &Case<'_>) -> Record {
    let (owner, _) = case.claim(LONG).await;
    let step = Step { resource: Some(super::resource()), checkpoint: Some(super::checkpoint("half")), ..a_step() };
    case.step(&owner, step).await;
    case.step(&owner, Step { lease: MOMENT, ..case.announce("charge") }).await;
    case.time_comes().await;
    case.record().await
}

async fn failed_with_a_call(case: &Case<'_>) -> Record {
    let (owner, _) = case.claim(LONG).await;
    stored(case.store.step(&owner, &case.announce("charge")).await);
    case.finish(&owner, End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP }).await;
    case.record().await
}

const STRANDED: Tended = Tended::Stranded { ask_in: LONG };
const PARKED: Tended = Tended::Parked { ask_in: LONG };

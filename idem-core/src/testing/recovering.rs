//! T10 to T14: asking the providers of an unknown record, what they say, and what a person decides.

use std::time::Duration;

use crate::calls::CallState;
use crate::hash::CommandHash;
use crate::record::{OwnerToken, Ownership, Record, Status, StatusName};
use crate::store::{Answered, AnsweredEnd, End, Guarded, Seen, Store, Tended, Verdicted};
use crate::testing::{
    Case, KEEP, LONG, MOMENT, an_audit, answer, answered, applied, at_once, changed, completed, ends, finished,
    refused, resource, still_unknown, written,
};

/// T10: the next fence, the worker's token and lease, one question more; the status and the attempts stay.
pub async fn an_unknown_record_is_taken_to_ask(store: &dyn Store) {
    let case = Case::new(store);
    let before = case.unknown("charge").await;
    let Status::Unknown { next_ask_at, .. } = before.status else { panic!("it is unknown") };
    let take = case.take(&before);
    let now = written(store.take_to_ask(&take).await);
    let expected = Record {
        status: Status::Unknown { next_ask_at, locked_until: Some(now + LONG), parked_at: None },
        fence: before.fence.next(),
        owner: take.owner,
        revision: before.revision.next(),
        ask_attempts: 1,
        ..before
    };
    assert_eq!(case.record().await, expected);
}

/// Only what is unknown, due and not asked about right now, and only as it was seen.
pub async fn only_an_unknown_record_that_is_due_is_asked_about(store: &dyn Store) {
    for end in ends().into_iter().filter(|end| end.status() != StatusName::Unknown) {
        let case = Case::new(store);
        case.ended(end).await;
        let before = case.record().await;
        assert_eq!(changed(store.take_to_ask(&case.take(&before)).await), Some(before));
    }
    let case = Case::new(store);
    case.overrun().await;
    let before = case.record().await;
    assert_eq!(changed(store.take_to_ask(&case.take(&before)).await), Some(before));

    let case = Case::new(store);
    case.ended(End::Unknown { ask_in: LONG }).await;
    let before = case.record().await;
    assert_eq!(changed(store.take_to_ask(&case.take(&before)).await), Some(before));

    let case = Case::new(store);
    let seen = case.unknown("charge").await;
    case.take_to_ask().await;
    let before = case.record().await;
    assert_eq!(changed(store.take_to_ask(&case.take(&seen)).await), Some(before.clone()));
    assert_eq!(changed(store.take_to_ask(&case.take(&before)).await), Some(before.clone()));
    assert_eq!(case.record().await, before);
}

/// Fence, owner, revision, hash and status guard as they guard a take-over; no request takes an unknown record over.
pub async fn an_unknown_record_is_taken_only_as_it_was_seen(store: &dyn Store) {
    let case = Case::new(store);
    let before = case.unknown("charge").await;
    let right = Seen::of(&before);
    let other = CommandHash::from_parts(1, 1, [2; 32]).expect("a legal hash");
    for seen in [
        Seen { fence: right.fence.next(), ..right.clone() },
        Seen { owner: OwnerToken::random(), ..right.clone() },
        Seen { revision: right.revision.next(), ..right.clone() },
        Seen { hash: other, ..right.clone() },
        Seen { status: StatusName::InProgress, ..right.clone() },
    ] {
        let take = crate::store::TakeOver { seen, ..case.take(&before) };
        assert_eq!(changed(store.take_to_ask(&take).await), Some(before.clone()));
    }
    assert_eq!(changed(store.take_over(&case.take(&before)).await), Some(before));
}

/// A worker that died while it asked: after its lease another one asks, under the next fence.
pub async fn after_its_lease_another_worker_asks(store: &dyn Store) {
    let case = Case::new(store);
    let seen = case.unknown("charge").await;
    let first = crate::store::TakeOver { lease: MOMENT, ..case.take(&seen) };
    written(store.take_to_ask(&first).await);
    let late = Ownership { scope: case.scope.clone(), fence: seen.fence.next(), owner: first.owner };
    case.time_comes().await;
    let second = case.take_to_ask().await;
    assert_eq!((second.fence, case.record().await.ask_attempts), (seen.fence.next().next(), 2));
    let before = case.record().await;
    let late_answer = Answered { closed: vec![applied("charge", "late")], ..answered(AnsweredEnd::Ended(completed())) };
    assert_eq!(refused(store.answer(&late, &late_answer).await), Some(before));
    case.answer(&second, answered(still_unknown(false))).await;
}

/// An answer given after the lease, with nobody else asking, counts: the fence decides, not the clock.
pub async fn an_answer_after_the_lease_without_rival_counts(store: &dyn Store) {
    let case = Case::new(store);
    let seen = case.unknown("charge").await;
    let take = crate::store::TakeOver { lease: MOMENT, ..case.take(&seen) };
    written(store.take_to_ask(&take).await);
    case.time_comes().await;
    let worker = Ownership { scope: case.scope.clone(), fence: seen.fence.next(), owner: take.owner };
    case.answer(&worker, answered(AnsweredEnd::Ended(completed()))).await;
    assert_eq!(case.record().await.status.name(), StatusName::Completed);
}

/// Of sixteen workers one asks.
pub async fn of_rivals_one_asks(store: &dyn Store) {
    let case = Case::new(store);
    let seen = case.unknown("charge").await;
    let taken = at_once(async || store.take_to_ask(&case.take(&seen)).await).await;
    assert_eq!(taken.iter().filter(|taken| matches!(taken, Ok(Guarded::Written { .. }))).count(), 1);
    let record = case.record().await;
    assert_eq!((record.fence, record.ask_attempts), (seen.fence.next(), 1));
}

/// T11: the answer that the provider's word makes, with the call's outcome and the resource.
pub async fn an_applied_answer_completes(store: &dyn Store) {
    let case = Case::new(store);
    case.unknown("charge").await;
    let worker = case.take_to_ask().await;
    let before = case.record().await;
    let answered = Answered {
        closed: vec![applied("charge", "receipt")],
        resource: Some(resource()),
        end: AnsweredEnd::Ended(completed()),
    };
    let at = case.answer(&worker, answered).await;
    let mut expected = Record {
        status: Status::Completed(finished(answer("{}"), at)),
        revision: before.revision.next(),
        resource: Some(resource()),
        ..before
    };
    expected.calls[0].state = CallState::Applied(b"receipt".to_vec());
    assert_eq!(case.record().await, expected);
}

/// T11 with a refusal, and T12, T11r: to be run again, with the call withdrawn.
pub async fn a_rejected_or_withdrawn_answer_ends_it(store: &dyn Store) {
    let [_, replayable, retryable, _] = ends();
    for (state, end) in [(CallState::Rejected(b"422\n".to_vec()), replayable), (CallState::Withdrawn, retryable)] {
        let case = Case::new(store);
        case.unknown("charge").await;
        let worker = case.take_to_ask().await;
        let closed = vec![crate::store::ClosedCall { name: "charge".into(), state: state.clone() }];
        let status = end.status();
        case.answer(&worker, Answered { closed, ..answered(AnsweredEnd::Ended(end)) }).await;
        let record = case.record().await;
        assert_eq!((record.status.name(), &record.calls[0].state), (status, &state));
        if status == StatusName::FailedRetryable {
            case.take_over().await;
            let next = case.record().await;
            // Whoever is asked about the next attempt is asked for the first time.
            assert_eq!((next.attempts, next.ask_attempts), (2, 0));
        }
    }
}

/// T13: asked again later; the lease is over, and a call that was answered stays so.
pub async fn still_unknown_is_asked_again(store: &dyn Store) {
    let case = Case::new(store);
    case.unknown("charge").await;
    let worker = case.take_to_ask().await;
    let before = case.record().await;
    let now = case.answer(&worker, answered(AnsweredEnd::StillUnknown { ask_in: Duration::ZERO, park: false })).await;
    let status = Status::Unknown { next_ask_at: now, locked_until: None, parked_at: None };
    assert_eq!(case.record().await, Record { status, revision: before.revision.next(), ..before });
    case.take_to_ask().await;
    assert_eq!(case.record().await.ask_attempts, 2);
}

/// T13: past the horizon a person is called; the record is still asked about, and parked since the first time.
pub async fn a_parked_record_is_still_asked_about(store: &dyn Store) {
    let case = Case::new(store);
    case.unknown("charge").await;
    let mut since = None;
    for _ in 0..2 {
        let worker = case.take_to_ask().await;
        let end = AnsweredEnd::StillUnknown { ask_in: Duration::ZERO, park: true };
        let now = case.answer(&worker, answered(end)).await;
        let parked_at = *since.get_or_insert(now);
        let status = Status::Unknown { next_ask_at: now, locked_until: None, parked_at: Some(parked_at) };
        assert_eq!(case.record().await.status, status);
        case.time_passes(now).await;
    }
    // It is not parked any less for being asked once more.
    let worker = case.take_to_ask().await;
    case.answer(&worker, answered(still_unknown(false))).await;
    assert!(case.record().await.is_parked());
}

/// Nobody but the worker that asks writes an answer: not under another token or fence, not the attempt that left the
/// record unknown, not a worker twice.
pub async fn only_who_asks_answers(store: &dyn Store) {
    let case = Case::new(store);
    let attempt = case.unknown("charge").await.ownership();
    case.writes_nothing(&attempt).await;
    let worker = case.take_to_ask().await;
    case.writes_nothing(&attempt).await;
    case.writes_nothing(&Ownership { owner: OwnerToken::random(), ..worker.clone() }).await;
    case.writes_nothing(&Ownership { fence: worker.fence.next(), ..worker.clone() }).await;
    case.answer(&worker, answered(still_unknown(false))).await;
    case.writes_nothing(&worker).await;
    let nobody = Ownership { scope: Case::new(store).scope, ..worker };
    assert_eq!(refused(store.answer(&nobody, &answered(still_unknown(false))).await), None);
}

/// An answer whose own answer was lost, sent again: refused, unchanged, and the record shows the sender's own end.
pub async fn an_answer_sent_again_finds_its_own_end(store: &dyn Store) {
    for end in ends().into_iter().filter(|end| end.status() != StatusName::Unknown) {
        let case = Case::new(store);
        case.unknown("charge").await;
        let worker = case.take_to_ask().await;
        let status = end.status();
        let answered = answered(AnsweredEnd::Ended(end));
        case.answer(&worker, answered.clone()).await;
        let before = case.record().await;
        assert_eq!(refused(store.answer(&worker, &answered).await), Some(before.clone()));
        assert_eq!((before.ownership(), before.status.name()), (worker, status));
    }
}

/// T14: a person ends it, whatever the end is; the audit says who and why, and the fence moves.
pub async fn a_parked_record_is_resolved(store: &dyn Store) {
    for end in ends() {
        for parked in [parked_unknown(store).await, parked_failure(store).await] {
            let (case, before) = parked;
            let status = end.status();
            let closed = vec![applied("charge", "by hand")];
            let verdict = Verdicted::Ended { closed, resource: Some(resource()), end: end.clone() };
            let audit = an_audit(&case.scope);
            assert_eq!(case.audited().await, []);
            written(store.resolve(&Seen::of(&before), &verdict, &audit).await);
            let record = case.record().await;
            assert_eq!((record.status.name(), record.fence), (status, before.fence.next()));
            assert_eq!((record.revision, record.is_parked()), (before.revision.next(), false));
            assert_eq!(record.calls[0].state, CallState::Applied(b"by hand".to_vec()));
            assert_eq!(record.resource, Some(resource()));
            assert_eq!(case.audited().await, [audit]);
        }
    }
}

/// T14, "ask again": due at once, parked no longer.
pub async fn a_parked_record_is_asked_about_at_once(store: &dyn Store) {
    for (case, before) in [parked_unknown(store).await, parked_failure(store).await] {
        let now = written(store.resolve(&Seen::of(&before), &Verdicted::AskAgain, &an_audit(&case.scope)).await);
        let record = case.record().await;
        let status = Status::Unknown { next_ask_at: now, locked_until: None, parked_at: None };
        assert_eq!((&record.status, record.fence, record.calls), (&status, before.fence.next(), before.calls));
        case.take_to_ask().await;
    }
}

/// Only a parked record, only as it was seen; a refusal leaves no row in the audit.
pub async fn only_a_parked_record_is_resolved(store: &dyn Store) {
    let (case, parked) = parked_unknown(store).await;
    let verdict = || Verdicted::Ended { closed: vec![applied("charge", "late")], resource: None, end: completed() };
    let right = Seen::of(&parked);
    for seen in [
        Seen { fence: right.fence.next(), ..right.clone() },
        Seen { owner: OwnerToken::random(), ..right.clone() },
        Seen { revision: right.revision.next(), ..right.clone() },
        Seen { status: StatusName::FailedRetryable, ..right },
    ] {
        let resolved = store.resolve(&seen, &verdict(), &an_audit(&case.scope)).await;
        assert_eq!(changed(resolved), Some(parked.clone()));
    }
    assert_eq!(case.audited().await, []);
    let mut others = vec![Case::new(store)];
    others[0].claim(LONG).await;
    for end in ends() {
        let case = Case::new(store);
        case.ended(end).await;
        others.push(case);
    }
    for case in others {
        let before = case.record().await;
        for verdict in [verdict(), Verdicted::AskAgain] {
            let resolved = store.resolve(&Seen::of(&before), &verdict, &an_audit(&case.scope)).await;
            assert_eq!(changed(resolved), Some(before.clone()));
        }
        assert_eq!(case.audited().await, []);
    }
    let nobody = Seen { scope: Case::new(store).scope, ..Seen::of(&parked) };
    let audit = an_audit(&nobody.scope);
    assert_eq!(changed(store.resolve(&nobody, &Verdicted::AskAgain, &audit).await), None);
}

/// A worker that asks while a person resolves writes nothing any more.
pub async fn after_a_verdict_the_worker_writes_nothing(store: &dyn Store) {
    let ended = Verdicted::Ended { closed: Vec::new(), resource: None, end: completed() };
    for verdict in [Verdicted::AskAgain, ended] {
        let (case, _) = parked_unknown(store).await;
        let worker = case.take_to_ask().await;
        let seen = Seen::of(&case.record().await);
        written(store.resolve(&seen, &verdict, &an_audit(&case.scope)).await);
        case.writes_nothing(&worker).await;
    }
}

/// An unknown record that is parked, and due.
async fn parked_unknown(store: &dyn Store) -> (Case<'_>, Record) {
    let case = Case::new(store);
    let before = case.unknown("charge").await;
    written(store.tend(&Seen::of(&before), &PARKED).await);
    let record = case.record().await;
    (case, record)
}

async fn parked_failure(store: &dyn Store) -> (Case<'_>, Record) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.finish(&owner, End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP }).await;
    let before = case.record().await;
    written(store.tend(&Seen::of(&before), &PARKED).await);
    let record = case.record().await;
    (case, record)
}

const PARKED: Tended = Tended::Parked { ask_in: Duration::ZERO };

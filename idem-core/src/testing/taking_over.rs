//! T8, T15: what a request may do to a record that it found, and only if it stands as it was seen.

use std::time::Duration;

use futures_util::future::join;

use crate::hash::CommandHash;
use crate::record::{Fence, OwnerToken, Record, Revision, Status, StatusName};
use crate::store::{End, Fenced, Guarded, Seen, Step, Store, TakeOver};
use crate::testing::{
    Case, KEEP, LONG, MOMENT, a_step, at_once, changed, checkpoint, ends, hash, resource, tendings, written,
};

/// T8: the next owner has the next fence, a full lease and everything that the record knew.
pub async fn a_lease_that_is_over_is_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    let (first, _) = case.claim(LONG).await;
    let step = Step { resource: Some(resource()), checkpoint: Some(checkpoint("half")), ..case.announce("charge") };
    let step = Step { lease: MOMENT, ..step };
    case.step(&first, step).await;
    case.time_comes().await;
    let before = case.record().await;
    let take = case.take(&before);
    let now = written(store.take_over(&take).await);
    let after = case.record().await;
    assert_eq!((after.fence, after.owner), (Fence::FIRST.next(), take.owner));
    assert_eq!((after.attempts, after.revision), (2, before.revision.next()));
    assert_eq!(after.status, Status::InProgress { locked_until: now + LONG });
    assert_eq!((after.hash, after.created_at), (hash(1), before.created_at));
    assert_eq!((after.calls, after.resource), (before.calls, Some(resource())));
    assert_eq!(after.checkpoint, Some(checkpoint("half")));
}

/// While the lease lasts nobody takes over, whatever he saw.
pub async fn a_live_lease_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.claim(LONG).await;
    let before = case.record().await;
    assert_eq!(changed(store.take_over(&case.take(&before)).await), Some(before));
}

/// A record that was made anew, after the one that was seen was forgotten or lost in a failover, may have its fence,
/// revision, hash and status. It has another owner.
pub async fn a_record_of_the_keys_next_life_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let before = case.record().await;
    let of_the_first_life = Record { owner: OwnerToken::random(), ..before.clone() };
    assert_eq!(changed(store.take_over(&case.take(&of_the_first_life)).await), Some(before.clone()));
    for to in tendings() {
        assert_eq!(changed(store.tend(&Seen::of(&of_the_first_life), &to).await), Some(before.clone()));
    }
    written(store.take_over(&case.take(&before)).await);
}

/// Any write since the look makes the take-over fail, though fence, owner and lease say yes.
pub async fn a_record_that_was_written_since_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    let owner = case.overrun().await;
    let seen = case.record().await;
    case.step(&owner, Step { lease: Duration::ZERO, ..a_step() }).await;
    let before = case.record().await;
    assert_eq!(before.revision, seen.revision.next());
    assert_eq!(changed(store.take_over(&case.take(&seen)).await), Some(before.clone()));
    assert_eq!(case.record().await, before);
}

/// B decides on a record without calls; A announces one, late; B's take-over must lose, or the call happens twice.
pub async fn an_announcement_made_after_the_decision_wins(store: &dyn Store) {
    for _ in 0..8 {
        let case = Case::new(store);
        let a = case.overrun().await;
        let seen_by_b = case.record().await;
        assert!(seen_by_b.calls.is_empty());
        let announcement = Step { lease: Duration::ZERO, ..case.announce("charge") };
        case.step(&a, announcement).await;
        let found = changed(store.take_over(&case.take(&seen_by_b)).await).expect("the record is there");
        assert!(found.has_open_call());
        assert_eq!(case.record().await.ownership(), a);
    }
}

/// Announcement and take-over at the same time: one of them is written, and a call that the new owner has not seen
/// is not in its record.
pub async fn of_announcement_and_take_over_one_wins(store: &dyn Store) {
    for round in 0..16 {
        let case = Case::new(store);
        let a = case.overrun().await;
        let seen_by_b = case.record().await;
        let (announcement, take) = (case.announce("charge"), case.take(&seen_by_b));
        let (announcing, taking) = (store.step(&a, &announcement), store.take_over(&take));
        let (announced, taken) = if round % 2 == 0 {
            join(announcing, taking).await
        } else {
            let (taken, announced) = join(taking, announcing).await;
            (announced, taken)
        };
        let record = case.record().await;
        match (announced, taken) {
            (Ok(Fenced::Written { .. }), Ok(Guarded::Changed(Some(found)))) => {
                assert!(found.record.has_open_call());
                assert_eq!(record.ownership(), a);
            }
            (Ok(Fenced::Refused(Some(found))), Ok(Guarded::Written { .. })) => {
                assert_eq!((found.record.owner, record.owner), (take.owner, take.owner));
                assert!(record.calls.is_empty());
            }
            both => panic!("round {round}: {both:?}"),
        }
    }
}

/// The seen fence guards.
pub async fn a_record_under_another_fence_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let before = case.record().await;
    let mut take = case.take(&before);
    take.seen.fence = take.seen.fence.next();
    assert_eq!(changed(store.take_over(&take).await), Some(before));
}

/// The seen hash guards, each of its three parts.
pub async fn a_record_of_another_command_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let before = case.record().await;
    for (form, version, digest) in [(1, 1, [2; 32]), (2, 1, [1; 32]), (1, 2, [1; 32])] {
        let mut take = case.take(&before);
        take.seen.hash = CommandHash::from_parts(form, version, digest).expect("a legal hash");
        assert_eq!(changed(store.take_over(&take).await), Some(before.clone()));
    }
}

/// The seen status guards.
pub async fn a_record_of_another_status_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let before = case.record().await;
    for status in StatusName::ALL.into_iter().filter(|&status| status != StatusName::InProgress) {
        let take = TakeOver { seen: Seen { status, ..Seen::of(&before) }, ..case.take(&before) };
        assert_eq!(changed(store.take_over(&take).await), Some(before.clone()), "{status}");
    }
}

/// A take-over whose answer was lost, sent again: refused, and the record shows its token.
pub async fn a_take_over_sent_again_finds_its_own_token(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    let take = case.take(&case.record().await);
    written(store.take_over(&take).await);
    let found = changed(store.take_over(&take).await).expect("the record is there");
    assert_eq!((found.owner, found.fence, found.attempts), (take.owner, Fence::FIRST.next(), 2));
}

/// Of sixteen rivals for a lease that is over, one wins.
pub async fn of_rivals_one_takes_over(store: &dyn Store) {
    let case = Case::new(store);
    case.overrun().await;
    one_takes_over(&case).await;
}

/// Of sixteen rivals for a failed record that is due, one wins.
pub async fn of_rivals_one_retries(store: &dyn Store) {
    let case = Case::new(store);
    case.ended(End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP }).await;
    one_takes_over(&case).await;
}

async fn one_takes_over(case: &Case<'_>) {
    let seen = case.record().await;
    let takes = at_once(async || {
        let take = case.take(&seen);
        (take.owner, case.store.take_over(&take).await)
    })
    .await;
    let winners: Vec<_> = takes
        .iter()
        .filter(|(_, taken)| matches!(taken, Ok(Guarded::Written { .. })))
        .map(|(owner, _)| *owner)
        .collect();
    let losers = takes.iter().filter(|(_, taken)| matches!(taken, Ok(Guarded::Changed(Some(_))))).count();
    assert_eq!((winners.len(), losers), (1, 15));
    let record = case.record().await;
    assert_eq!((record.owner, record.fence, record.attempts), (winners[0], seen.fence.next(), 2));
}

/// Where no record is, nothing is taken over, asked about or tended, and nothing made.
pub async fn nothing_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    let (hash, status) = (hash(1), StatusName::InProgress);
    let owner = case.new_claim(LONG).owner;
    let seen = Seen { scope: case.scope.clone(), fence: Fence::FIRST, owner, revision: Revision::FIRST, hash, status };
    let take = TakeOver { seen: seen.clone(), owner: case.new_claim(LONG).owner, lease: LONG };
    assert_eq!(changed(store.take_over(&take).await), None);
    assert_eq!(changed(store.take_to_ask(&take).await), None);
    for to in tendings() {
        assert_eq!(changed(store.tend(&seen, &to).await), None);
    }
    case.claim(LONG).await;
}

/// Completed, failed for good, unknown: no request takes these over, though it saw them as they are.
pub async fn what_is_settled_is_not_taken_over(store: &dyn Store) {
    for end in ends().into_iter().filter(|end| end.status() != StatusName::FailedRetryable) {
        let case = Case::new(store);
        case.ended(end).await;
        let before = case.record().await;
        assert_eq!(changed(store.take_over(&case.take(&before)).await), Some(before.clone()));
        assert_eq!(case.record().await, before);
    }
}

/// T15: a failed record is run again by one who is due.
pub async fn a_failed_record_that_is_due_is_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.ended(End::FailedRetryable { retry_in: MOMENT, keep: KEEP }).await;
    case.time_comes().await;
    let before = case.record().await;
    let take = case.take(&before);
    let now = written(store.take_over(&take).await);
    let after = case.record().await;
    assert_eq!(after.status, Status::InProgress { locked_until: now + LONG });
    assert_eq!((after.fence, after.owner, after.attempts), (Fence::FIRST.next(), take.owner, 2));
    assert_eq!((after.revision, after.created_at), (before.revision.next(), before.created_at));
}

/// Before its time a failed record is not run again.
pub async fn a_failed_record_that_is_not_due_is_not_taken_over(store: &dyn Store) {
    let case = Case::new(store);
    case.ended(End::FailedRetryable { retry_in: LONG, keep: KEEP }).await;
    let before = case.record().await;
    assert_eq!(changed(store.take_over(&case.take(&before)).await), Some(before));
}

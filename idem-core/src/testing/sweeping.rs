//! T16, T17 and bodies: what is forgotten, when, and what never is.
//!
//! Stores of one test run may share a database, and then sweep each other's records: a behaviour sweeps until its own
//! record is swept, and counts nothing but what a round must not exceed.

use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::calls::CallState;
use crate::record::{Fence, Finished, Keep, Record, Status, StatusName};
use crate::store::{Claimed, ClosedCall, End, Finish, NewClaim, Step, Store, SweepOrder, Swept};
use crate::testing::{
    Case, KEEP, LONG, MOMENT, a_step, answer, applied, checkpoint, eventually, finish, resource, stored,
};

/// T16: the answer, the outcomes and the checkpoint go; what the key meant, and what it made, stays.
pub async fn after_the_window_a_record_expires(store: &dyn Store) {
    for end in ends(OVER) {
        let case = Case::new(store);
        let before = worked(&case, end).await;
        let (expires_at, purge_at) = times(&before.status);
        expired(&case).await;
        let mut expected = Record {
            status: Status::Expired { purge_at },
            revision: before.revision.next(),
            checkpoint: None,
            ..before
        };
        expected.calls[0].state = CallState::Applied(Vec::new());
        expected.calls[1].state = CallState::Rejected(Vec::new());
        assert_eq!(case.looked().await, Some(expected));
        let found = store.look(&case.scope).await.expect("a look").expect("a record");
        assert!(expires_at <= found.now);
    }
}

/// Before its window is over nothing of a record goes.
pub async fn within_the_window_nothing_is_swept(store: &dyn Store) {
    let mut cases = Vec::new();
    for end in ends(KEEP) {
        let case = Case::new(store);
        let before = worked(&case, end).await;
        cases.push((case, before));
    }
    sweep_a_while(store).await;
    for (case, before) in cases {
        assert_eq!(case.looked().await, Some(before));
    }
}

/// In progress, unknown, and failed with a call left open: those are never swept, however old they are.
pub async fn what_is_not_settled_is_never_swept(store: &dyn Store) {
    let running = Case::new(store);
    running.overrun().await;
    let [retried, unknown, open] = [Case::new(store), Case::new(store), Case::new(store)];
    let (owner, _) = retried.claim(LONG).await;
    retried.finish(&owner, retryable(OVER)).await;
    // It had a window, which must not end the attempt that runs now.
    retried.take_over().await;
    let (owner, _) = unknown.claim(LONG).await;
    unknown.finish(&owner, retryable(OVER)).await;
    let owner = unknown.take_over().await;
    unknown.step(&owner, unknown.announce("charge")).await;
    unknown.finish(&owner, End::Unknown { ask_in: Duration::ZERO }).await;
    let (owner, _) = open.claim(LONG).await;
    open.step(&owner, open.announce("charge")).await;
    open.finish(&owner, retryable(OVER)).await;
    let mut all = Vec::new();
    for case in [running, retried, unknown, open] {
        let before = case.looked().await;
        all.push((case, before));
    }
    sweep_a_while(store).await;
    for (case, before) in all {
        assert_eq!(case.looked().await, before);
    }
}

/// A record that ended well with a call left open has an answer, and that answer has a window.
pub async fn an_open_call_does_not_keep_an_answer(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, case.announce("charge")).await;
    case.finish(&owner, End::Completed { response: answer("{}"), keep: OVER }).await;
    expired(&case).await;
    assert_eq!(case.looked().await.map(|record| record.calls[0].state.clone()), Some(CallState::Open));
}

/// A body goes before its answer does, where it is kept for less time; status and headers stay.
pub async fn a_body_goes_before_its_window_is_over(store: &dyn Store) {
    let keep = Keep { body: MOMENT, ..KEEP };
    let ends =
        [End::Completed { response: answer("{}"), keep }, End::FailedReplayable { response: answer("no"), keep }];
    for end in ends {
        let case = Case::new(store);
        let before = worked(&case, end).await;
        let (Status::Completed(whole) | Status::FailedReplayable(whole)) = before.status.clone() else {
            panic!("it is final")
        };
        assert_eq!(whole.body_until, whole.at + MOMENT);
        sweep_until(&case, |record| body(record).is_none()).await;
        let after = case.looked().await.expect("the record stays");
        let (Status::Completed(swept) | Status::FailedReplayable(swept)) = after.status.clone() else {
            panic!("it is still final")
        };
        let response = crate::record::StoredResponse { body: None, ..whole.response.clone() };
        assert_eq!(swept, Finished { response, ..whole });
        assert_eq!(after.revision, before.revision.next());
        assert_eq!(Record { status: before.status.clone(), revision: before.revision, ..after.clone() }, before);
        // Once is enough.
        sweep_a_while(store).await;
        assert_eq!(case.looked().await, Some(after));
    }
}

/// T17: once the metadata's time is over too, the record is gone, and its key is new.
pub async fn after_its_metadata_a_record_is_gone(store: &dyn Store) {
    for end in ends(Keep { metadata: Duration::ZERO, ..OVER }) {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.finish(&owner, end).await;
        gone(&case, false).await;
        let claim = NewClaim { hash: super::hash(2), ..case.new_claim(LONG) };
        assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
    }
}

/// A record whose call was ever announced stays as a tombstone, unless purging it is chosen; with it its calls and
/// evidence go, and both can be there anew.
pub async fn a_tombstone_stays_unless_purging_it_is_chosen(store: &dyn Store) {
    // The only behaviour that chooses it, since stores may share a database.
    let withdrawn = Case::new(store);
    let (owner, _) = withdrawn.claim(LONG).await;
    withdrawn.step(&owner, withdrawn.announce("charge")).await;
    let closed = vec![ClosedCall { name: "charge".into(), state: CallState::Withdrawn }];
    let end = End::Completed { response: answer("{}"), keep: Keep { metadata: Duration::ZERO, ..OVER } };
    stored(store.finish(&owner, &Finish { closed, ..finish(end) }).await);
    let key = withdrawn.new_call("charge").key;
    let evidence = crate::store::Evidence { key, source: "webhook".into(), state: CallState::Withdrawn };
    store.learn(&evidence).await.expect("learned");
    expired(&withdrawn).await;
    sweep_a_while(store).await;
    let tombstone = withdrawn.looked().await.expect("it stays");
    assert_eq!((tombstone.status.name(), tombstone.calls.len()), (StatusName::Expired, 1));
    assert_eq!(tombstone.hash, super::hash(1));

    gone(&withdrawn, true).await;
    assert_eq!(withdrawn.learned().await, []);
    assert_eq!(store.learn(&evidence).await.expect("nothing learned"), None);
    let (owner, _) = withdrawn.claim(LONG).await;
    withdrawn.step(&owner, withdrawn.announce("charge")).await;
    assert!(withdrawn.record().await.has_open_call());
}

/// What the metadata's time still protects stays expired.
pub async fn metadata_outlives_the_window(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.finish(&owner, retryable(OVER)).await;
    expired(&case).await;
    let before = case.looked().await;
    sweep_a_while(store).await;
    assert_eq!(case.looked().await, before);
}

/// What is expired is nobody's to write, and no worker looks at it.
pub async fn an_expired_record_is_not_written(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.finish(&owner, retryable(OVER)).await;
    expired(&case).await;
    case.writes_nothing(&owner).await;
    let before = case.record().await;
    assert_eq!(super::changed(store.take_over(&case.take(&before)).await), Some(before.clone()));
    for to in super::tendings() {
        let seen = crate::store::Seen::of(&before);
        assert_eq!(super::changed(store.tend(&seen, &to).await), Some(before.clone()));
    }
}

/// A round does no more than it was asked for, and rounds together do all.
pub async fn a_round_is_bounded(store: &dyn Store) {
    let mut cases = Vec::new();
    for number in 0..9 {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        let keep = match number % 3 {
            0 => Keep { body: MOMENT, ..KEEP },
            1 => OVER,
            _ => Keep { metadata: Duration::ZERO, ..OVER },
        };
        case.finish(&owner, End::Completed { response: answer("{}"), keep }).await;
        cases.push((number, case));
    }
    assert_eq!(store.sweep(SweepOrder { limit: 0, purge_tombstones: false }).await.expect("a round"), Swept::default());
    eventually(async || {
        for limit in [1, 2] {
            let swept = store.sweep(SweepOrder { limit, purge_tombstones: false }).await.expect("a round");
            assert!(swept.bodies.max(swept.expired).max(swept.purged) <= u64::from(limit), "{swept:?}");
        }
        let mut left = 0;
        for (number, case) in &cases {
            let record = case.looked().await;
            let done = match number % 3 {
                0 => body(&record.expect("it stays")).is_none(),
                1 => record.expect("it stays").status.name() == StatusName::Expired,
                _ => record.is_none(),
            };
            left += usize::from(!done);
        }
        left == 0
    })
    .await;
}

/// Several sweep at once, and each record is swept once; none of them fails.
pub async fn many_sweep_at_once(store: &dyn Store) {
    let mut cases = Vec::new();
    for _ in 0..32 {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.finish(&owner, retryable(OVER)).await;
        cases.push((case.record().await.revision, case));
    }
    eventually(async || {
        let rounds = (0..4).map(|_| store.sweep(SweepOrder { limit: 5, purge_tombstones: false }));
        for swept in join_all(rounds).await {
            swept.expect("a round");
        }
        let mut left = 0;
        for (_, case) in &cases {
            left += usize::from(case.looked().await.expect("it stays").status.name() != StatusName::Expired);
        }
        left == 0
    })
    .await;
    for (before, case) in cases {
        assert_eq!(case.looked().await.map(|record| record.revision), Some(before.next()));
    }
}

/// A retry that is due and a sweeper whose time has come, at the same moment: the attempt runs, or the key is expired.
pub async fn of_a_retry_and_a_sweeper_one_wins(store: &dyn Store) {
    for _ in 0..8 {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.finish(&owner, retryable(OVER)).await;
        case.time_comes().await;
        let take = case.take(&case.record().await);
        let sweeping = store.sweep(SweepOrder { limit: 100, purge_tombstones: false });
        let (swept, taken) = join(sweeping, store.take_over(&take)).await;
        swept.expect("a round");
        let record = case.looked().await.expect("it stays");
        match taken.expect("a take-over") {
            crate::store::Guarded::Written { .. } => assert_eq!(record.ownership().owner, take.owner),
            crate::store::Guarded::Changed(found) => {
                assert_eq!(found.map(|found| found.record.status.name()), Some(StatusName::Expired));
            }
        }
    }
}

/// A claim and a sweeper that purges the key's old record, at the same moment: the claim finds what is left of the
/// record, or its own is there. What was inserted is never what is purged.
pub async fn of_a_claim_and_a_purge_nothing_is_lost(store: &dyn Store) {
    for round in 0..32 {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        let keep = Keep { metadata: Duration::ZERO, ..OVER };
        case.finish(&owner, End::Completed { response: answer("{}"), keep }).await;
        eventually(async || {
            store.sweep(SweepOrder { limit: 100, purge_tombstones: false }).await.expect("a batch");
            case.looked().await.is_none_or(|record| record.status.name() == StatusName::Expired)
        })
        .await;
        let claim = NewClaim { hash: super::hash(2), ..case.new_claim(LONG) };
        let claiming = store.claim(&claim);
        let sweeping = store.sweep(SweepOrder { limit: 100, purge_tombstones: false });
        let (claimed, swept) = if round % 2 == 0 {
            join(claiming, sweeping).await
        } else {
            let (swept, claimed) = join(sweeping, claiming).await;
            (claimed, swept)
        };
        swept.expect("a batch");
        // Whoever sweeps now has nothing to take.
        store.sweep(SweepOrder { limit: 100, purge_tombstones: false }).await.expect("a batch");
        match claimed {
            Ok(Claimed::Inserted { .. }) => {
                let record = case.looked().await.expect("it was inserted");
                assert_eq!((record.owner, record.fence, record.hash), (claim.owner, Fence::FIRST, super::hash(2)));
                assert_eq!(record.status.name(), StatusName::InProgress);
            }
            Ok(Claimed::Found(found)) => {
                assert_eq!((found.record.status.name(), found.record.hash), (StatusName::Expired, super::hash(1)));
            }
            // The purge was not committed in time; the next claim is the first.
            Ok(Claimed::Held) => {}
            Err(error) => panic!("meeting a sweeper is no error: {error:?}"),
        }
    }
}

/// A record with two calls, a resource and a checkpoint, that ended so.
async fn worked(case: &Case<'_>, end: End) -> Record {
    let (owner, _) = case.claim(LONG).await;
    let step = Step { resource: Some(resource()), checkpoint: Some(checkpoint("half")), ..a_step() };
    case.step(&owner, step).await;
    case.step(&owner, case.announce("charge")).await;
    case.step(&owner, case.announce("notify")).await;
    let rejected = ClosedCall { name: "notify".into(), state: CallState::Rejected(b"422\n".to_vec()) };
    let closed = vec![applied("charge", "receipt"), rejected];
    stored(case.store.finish(&owner, &Finish { closed, ..finish(end) }).await);
    case.looked().await.expect("a record")
}

fn ends(keep: Keep) -> [End; 3] {
    [
        End::Completed { response: answer("{}"), keep },
        End::FailedReplayable { response: answer("no"), keep },
        retryable(keep),
    ]
}

fn retryable(keep: Keep) -> End {
    End::FailedRetryable { retry_in: Duration::ZERO, keep }
}

fn times(status: &Status) -> (std::time::SystemTime, std::time::SystemTime) {
    match status {
        Status::Completed(finished) | Status::FailedReplayable(finished) => (finished.expires_at, finished.purge_at),
        Status::FailedRetryable { expires_at, purge_at, .. } => (*expires_at, *purge_at),
        other => panic!("{} has no window", other.name()),
    }
}

fn body(record: &Record) -> Option<&[u8]> {
    match &record.status {
        Status::Completed(finished) | Status::FailedReplayable(finished) => finished.response.body.as_deref(),
        other => panic!("{} has no answer", other.name()),
    }
}

async fn expired(case: &Case<'_>) {
    sweep_until(case, |record| record.status.name() == StatusName::Expired).await;
}

async fn gone(case: &Case<'_>, purge_tombstones: bool) {
    eventually(async || {
        case.store.sweep(SweepOrder { limit: 100, purge_tombstones }).await.expect("a round");
        case.looked().await.is_none()
    })
    .await;
}

async fn sweep_until(case: &Case<'_>, done: impl Fn(&Record) -> bool) {
    eventually(async || {
        case.store.sweep(SweepOrder { limit: 100, purge_tombstones: false }).await.expect("a round");
        done(&case.looked().await.expect("it stays"))
    })
    .await;
}

/// Sweeps past the moment in which whatever is over is over.
async fn sweep_a_while(store: &dyn Store) {
    for _ in 0..4 {
        futures_timer::Delay::new(MOMENT).await;
        store.sweep(SweepOrder { limit: 1000, purge_tombstones: false }).await.expect("a round");
    }
}

/// A window that is over in a moment.
const OVER: Keep = Keep { window: MOMENT, body: MOMENT, metadata: LONG };

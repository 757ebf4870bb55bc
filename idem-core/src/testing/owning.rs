//! T2 to T7: what an owner may write, and that nobody else may.

use std::time::Duration;

use crate::key::Scope;
use crate::record::{Checkpoint, Fence, OwnerToken, Ownership, Record, Status, StatusName};
use crate::store::{End, Fenced, Finish, Step, Store};
use crate::testing::{
    Case, KEEP, LONG, MOMENT, a_step, answer, beat, completed, ends, finish, finished, fresh_tenant, late, refused,
    resource, stored,
};

/// T2: a full lease from the beat on.
pub async fn a_beat_renews_the_lease(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, now) = case.claim(MOMENT).await;
    let before = case.record().await;
    assert_eq!(beat(store, vec![(owner, LONG)]).await, [true]);
    let after = case.record().await;
    let Status::InProgress { locked_until } = after.status else { panic!("it is in progress") };
    assert!(now + LONG <= locked_until && locked_until <= case.found().await.now + LONG);
    assert_eq!(after.revision, before.revision.next());
    assert_eq!(Record { status: before.status.clone(), revision: before.revision, ..after }, before);
}

/// Each claim gets its own answer, at its own place.
pub async fn a_beat_tells_of_each_claim_in_order(store: &dyn Store) {
    let [mine, lost, done, never] = [Case::new(store), Case::new(store), Case::new(store), Case::new(store)];
    let (owner, _) = mine.claim(LONG).await;
    let late = lost.overrun().await;
    let taker = lost.take_over().await;
    let ended = done.ended(completed()).await;
    let nobody = Ownership { scope: never.scope.clone(), ..owner.clone() };
    let elsewhere =
        Ownership { scope: Scope::new(fresh_tenant(), "create_payment", owner.scope.key().clone()), ..owner };
    let owner = Ownership { scope: mine.scope.clone(), ..elsewhere.clone() };
    let live = [late, owner.clone(), ended, taker, nobody, elsewhere, owner].map(|owner| (owner, LONG));
    // The last asks twice for one record, as two handles of one claim would.
    assert_eq!(beat(store, live.to_vec()).await, [false, true, false, true, false, false, true]);
    assert_eq!(beat(store, Vec::new()).await, [false; 0]);
    let Status::Completed(_) = done.record().await.status else { panic!("a beat brought an answer back to life") };
}

/// Who is asked only whether it owns its record gets the same answers, and no lease.
pub async fn a_look_at_owners_renews_nothing(store: &dyn Store) {
    let [mine, lost, done, never] = [Case::new(store), Case::new(store), Case::new(store), Case::new(store)];
    let owner = mine.overrun().await;
    let late = lost.overrun().await;
    let taker = lost.take_over().await;
    let ended = done.ended(completed()).await;
    let nobody = Ownership { scope: never.scope.clone(), ..owner.clone() };
    let other = Ownership { owner: OwnerToken::random(), ..owner.clone() };
    let before = [mine.record().await, lost.record().await];
    let mut pulse = store.pulse().expect("a pulse");
    let asked = vec![late, owner.clone(), ended, taker, nobody, other, owner];
    let (tell, told) = futures_channel::oneshot::channel();
    std::thread::spawn(move || tell.send((pulse.owns(&asked), pulse.owns(&[]))));
    let (owns, none) = told.await.expect("it did not panic");
    assert_eq!(owns.expect("an answer"), [false, true, false, true, false, false, true]);
    assert_eq!(none.expect("an answer"), [false; 0]);
    assert_eq!([mine.record().await, lost.record().await], before);
}

/// As many as there are.
pub async fn a_beat_renews_many_claims(store: &dyn Store) {
    let tenant = fresh_tenant();
    let mut live = Vec::new();
    for number in 0..64 {
        let case = Case::of(store, tenant.clone(), "create_payment", &format!("key-{number}"));
        live.push((case.claim(LONG).await.0, LONG + Duration::from_secs(number)));
    }
    assert_eq!(beat(store, live).await, [true; 64]);
    let case = Case::of(store, tenant, "create_payment", "key-63");
    let found = case.found().await;
    let Status::InProgress { locked_until } = found.record.status else { panic!("it is in progress") };
    assert!(locked_until <= found.now + LONG + Duration::from_secs(63));
    assert!(found.record.created_at + LONG + Duration::from_secs(63) <= locked_until);
}

/// After a take-over the first owner steps, finishes and beats in vain, and the new one does not notice.
pub async fn a_late_owner_writes_nothing(store: &dyn Store) {
    let case = Case::new(store);
    let (late, _) = case.claim(LONG).await;
    case.step(&late, Step { lease: MOMENT, ..case.announce("charge") }).await;
    case.time_comes().await;
    let owner = case.take_over().await;
    case.writes_nothing(&late).await;
    case.finish(&owner, completed()).await;
    case.writes_nothing(&late).await;
}

/// A lease that is over and taken by nobody: the fence decides, not the clock.
pub async fn an_overrun_lease_without_rival_completes(store: &dyn Store) {
    let case = Case::new(store);
    let owner = case.overrun().await;
    case.finish(&owner, completed()).await;
    assert_eq!(case.record().await.status.name(), StatusName::Completed);
}

/// The same for a step and a beat: both give a new lease.
pub async fn an_overrun_lease_without_rival_goes_on(store: &dyn Store) {
    let case = Case::new(store);
    let owner = case.overrun().await;
    let now = case.step(&owner, a_step()).await;
    assert_eq!(case.record().await.status, Status::InProgress { locked_until: now + LONG });
    let other = Case::new(store);
    let owner = other.overrun().await;
    assert_eq!(beat(store, vec![(owner, LONG)]).await, [true]);
}

/// The right fence with another attempt's token is no ownership.
pub async fn another_token_writes_nothing(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.writes_nothing(&Ownership { owner: OwnerToken::random(), ..owner }).await;
}

/// The right token with another fence is no ownership.
pub async fn another_fence_writes_nothing(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.writes_nothing(&Ownership { fence: Fence::FIRST.next(), ..owner }).await;
}

/// Where no record is, an owner's write is refused, and makes none.
pub async fn nothing_has_no_owner(store: &dyn Store) {
    let case = Case::new(store);
    let owner = Ownership { scope: case.scope.clone(), fence: Fence::FIRST, owner: OwnerToken::random() };
    assert_eq!(refused(store.step(&owner, &case.announce("charge")).await), None);
    assert_eq!(refused(store.finish(&owner, &finish(completed())).await), None);
    case.claim(LONG).await;
}

/// T3: each step gives a full lease.
pub async fn a_step_renews_the_lease(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(MOMENT).await;
    let before = case.record().await;
    let now = case.step(&owner, a_step()).await;
    let after = case.record().await;
    assert_eq!(after.status, Status::InProgress { locked_until: now + LONG });
    assert_eq!(after.revision, before.revision.next());
    assert_eq!(after.ownership(), owner);
}

/// T3: the resource is set, stays when a step says nothing of it, and may be set anew.
pub async fn a_step_names_the_resource(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    case.step(&owner, Step { resource: Some(resource()), ..a_step() }).await;
    case.step(&owner, a_step()).await;
    assert_eq!(case.record().await.resource, Some(resource()));
    case.step(&owner, Step { resource: Some(late()), ..a_step() }).await;
    assert_eq!(case.record().await.resource, Some(late()));
}

/// T3: how far the work came is kept byte by byte, stays when a step says nothing of it, and the last word counts.
pub async fn a_step_keeps_a_checkpoint(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    assert_eq!(case.record().await.checkpoint, None);
    for data in [Vec::new(), b"\0".to_vec(), (0..=255).collect(), vec![0xff; 64 * 1024]] {
        let checkpoint = Some(Checkpoint { name: "reserved".into(), version: u32::MAX, data });
        case.step(&owner, Step { checkpoint: checkpoint.clone(), ..a_step() }).await;
        case.step(&owner, a_step()).await;
        assert_eq!(case.record().await.checkpoint, checkpoint);
    }
    case.finish(&owner, completed()).await;
    assert!(case.record().await.checkpoint.is_some());
}

/// Ends a first claim so, checks what every end has in common, and gives the status and the time of the write.
async fn end(store: &dyn Store, end: End) -> (Status, std::time::SystemTime) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    let before = case.record().await;
    let now = case.finish(&owner, end).await;
    let after = case.record().await;
    assert_eq!(after.revision, before.revision.next());
    let Record { status, .. } = after.clone();
    assert_eq!(Record { status: before.status.clone(), revision: before.revision, ..after }, before);
    (status, now)
}

/// T4
pub async fn completed_is_kept(store: &dyn Store) {
    let response = answer(r#"{"b":1,"a":2}"#);
    let (status, at) = end(store, End::Completed { response: response.clone(), keep: KEEP }).await;
    assert_eq!(status, Status::Completed(finished(response, at)));
}

/// T5
pub async fn failed_replayable_is_kept(store: &dyn Store) {
    let response = answer("declined");
    let (status, at) = end(store, End::FailedReplayable { response: response.clone(), keep: KEEP }).await;
    assert_eq!(status, Status::FailedReplayable(finished(response, at)));
}

/// T6
pub async fn failed_retryable_is_kept(store: &dyn Store) {
    let (status, now) = end(store, End::FailedRetryable { retry_in: MOMENT, keep: KEEP }).await;
    let expected = Status::FailedRetryable {
        next_attempt_at: now + MOMENT,
        expires_at: now + LONG,
        purge_at: now + LONG + LONG,
        parked_at: None,
    };
    assert_eq!(status, expected);
}

/// T7
pub async fn unknown_is_kept(store: &dyn Store) {
    let (status, now) = end(store, End::Unknown { ask_in: MOMENT }).await;
    assert_eq!(status, Status::Unknown { next_ask_at: now + MOMENT, locked_until: None, parked_at: None });
}

/// A finish whose answer was lost, sent again: refused, unchanged, and the record shows the sender's own end.
pub async fn a_finish_sent_again_finds_its_own_end(store: &dyn Store) {
    for end in ends() {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        let finish = finish(end);
        stored(store.finish(&owner, &finish).await);
        let before = case.record().await;
        let found = refused(store.finish(&owner, &finish).await).expect("the record is there");
        assert_eq!((found.ownership(), found.status.name()), (owner, finish.end.status()));
        assert_eq!(found, before);
        assert_eq!(case.record().await, before);
    }
}

/// An end is not ended otherwise, not stepped and not renewed, by its own owner neither.
pub async fn what_is_settled_is_not_written(store: &dyn Store) {
    for end in ends() {
        let case = Case::new(store);
        let owner = case.ended(end).await;
        case.writes_nothing(&owner).await;
    }
}

/// T4 to T7: a finish sets the resource, and keeps one that was set before.
pub async fn a_finish_names_the_resource(store: &dyn Store) {
    for end in ends() {
        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        let named = Finish { resource: Some(resource()), ..finish(end.clone()) };
        stored(store.finish(&owner, &named).await);
        assert_eq!(case.record().await.resource, Some(resource()));

        let case = Case::new(store);
        let (owner, _) = case.claim(LONG).await;
        case.step(&owner, Step { resource: Some(resource()), ..a_step() }).await;
        case.finish(&owner, end).await;
        assert_eq!(case.record().await.resource, Some(resource()));
    }
}

/// The second attempt's end is the record's end, with nothing left of the first's.
pub async fn a_retried_record_completes(store: &dyn Store) {
    let case = Case::new(store);
    let first = case.ended(End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP }).await;
    let second = case.take_over().await;
    assert!(matches!(store.finish(&first, &finish(completed())).await, Ok(Fenced::Refused(Some(_)))));
    let at = case.finish(&second, completed()).await;
    let record = case.record().await;
    let expected = finished(answer("{}"), at);
    assert_eq!((record.status, record.attempts), (Status::Completed(expected), 2));
}

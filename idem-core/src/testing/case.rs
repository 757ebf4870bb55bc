//! What behaviours are made of: one scope, and the moves on it.

use std::time::{Duration, SystemTime};

use futures_util::future::join_all;

use crate::calls::{CallClass, CallState, KeyForm};
use crate::hash::CommandHash;
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::record::{
    Checkpoint, Fence, Finished, Keep, OwnerToken, Ownership, Record, ResourceRef, Status, StoredResponse,
};
use crate::store::{
    Answered, AnsweredEnd, AuditEntry, Claimed, ClosedCall, Dated, End, Evidence, Fenced, Finish, Found, Guarded,
    NewCall, NewClaim, Seen, Step, Store, StoreError, TakeOver, Tended,
};

/// One scope of a store, with the few moves that behaviours are made of.
pub(crate) struct Case<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) scope: Scope,
}

impl<'a> Case<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self::of(store, fresh_tenant(), "create_payment", "key-1")
    }

    pub(crate) fn of(store: &'a dyn Store, tenant: Tenant, operation: &str, key: &str) -> Self {
        Self { store, scope: Scope::new(tenant, operation, key.parse::<IdempotencyKey>().expect("a legal key")) }
    }

    pub(crate) fn new_claim(&self, lease: Duration) -> NewClaim {
        NewClaim { scope: self.scope.clone(), hash: hash(1), owner: OwnerToken::random(), lease }
    }

    /// A first claim: its ownership, and the store's clock.
    pub(crate) async fn claim(&self, lease: Duration) -> (Ownership, SystemTime) {
        let claim = self.new_claim(lease);
        match self.store.claim(&claim).await {
            Ok(Claimed::Inserted { now }) => {
                (Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner }, now)
            }
            other => panic!("a first claim gave {other:?}"),
        }
    }

    /// A first claim whose lease is over.
    pub(crate) async fn overrun(&self) -> Ownership {
        let (owner, _) = self.claim(MOMENT).await;
        self.time_comes().await;
        owner
    }

    /// A first claim that ended so.
    pub(crate) async fn ended(&self, end: End) -> Ownership {
        let (owner, _) = self.claim(LONG).await;
        self.finish(&owner, end).await;
        owner
    }

    /// The record as a stranger's claim finds it.
    pub(crate) async fn found(&self) -> Found {
        match self.store.claim(&self.new_claim(LONG)).await {
            Ok(Claimed::Found(found)) => *found,
            other => panic!("a second claim gave {other:?}"),
        }
    }

    pub(crate) async fn record(&self) -> Record {
        self.found().await.record
    }

    /// Waits until the lease is over, or the next attempt due, by the store's clock.
    pub(crate) async fn time_comes(&self) {
        eventually(async || {
            let Found { record, now } = self.found().await;
            match record.status {
                Status::InProgress { locked_until: then }
                | Status::FailedRetryable { next_attempt_at: then, .. }
                | Status::Unknown { next_ask_at: then, locked_until: None, .. }
                | Status::Unknown { locked_until: Some(then), .. } => then <= now,
                other => panic!("{} waits for nothing", other.name()),
            }
        })
        .await;
    }

    /// Waits until the store's clock shows another time than `then`.
    pub(crate) async fn time_passes(&self, then: SystemTime) {
        eventually(async || then < self.found().await.now).await;
    }

    /// A first claim that announced this call and ended unknown, due to be asked at once.
    pub(crate) async fn unknown(&self, call: &str) -> Record {
        let (owner, _) = self.claim(LONG).await;
        self.step(&owner, self.announce(call)).await;
        self.finish(&owner, End::Unknown { ask_in: Duration::ZERO }).await;
        self.record().await
    }

    /// Takes the record that stands there to ask its providers.
    pub(crate) async fn take_to_ask(&self) -> Ownership {
        let record = self.record().await;
        let take = self.take(&record);
        written(self.store.take_to_ask(&take).await);
        Ownership { scope: take.seen.scope, fence: record.fence.next(), owner: take.owner }
    }

    /// The record, if there is one, without any claim.
    pub(crate) async fn looked(&self) -> Option<Record> {
        self.store.look(&self.scope).await.expect("a look").map(|found| found.record)
    }

    /// What was learned about its calls, each dated between its first claim and now.
    pub(crate) async fn learned(&self) -> Vec<Evidence> {
        self.dated(self.store.learned(&self.scope).await.expect("the evidence")).await
    }

    /// What was done to it by hand, dated likewise.
    pub(crate) async fn audited(&self) -> Vec<AuditEntry> {
        self.dated(self.store.audited(&self.scope).await.expect("the audit")).await
    }

    async fn dated<T>(&self, kept: Vec<Dated<T>>) -> Vec<T> {
        if let Some(found) = self.store.look(&self.scope).await.expect("a look") {
            let dates: Vec<_> = kept.iter().map(|kept| kept.at).collect();
            let within = dates.iter().all(|at| found.record.created_at <= *at && *at <= found.now);
            assert!(within && dates.is_sorted(), "{dates:?} of {found:?}");
        }
        kept.into_iter().map(|kept| kept.what).collect()
    }

    pub(crate) async fn answer(&self, owner: &Ownership, answered: Answered) -> SystemTime {
        stored(self.store.answer(owner, &answered).await)
    }

    pub(crate) fn take(&self, record: &Record) -> TakeOver {
        TakeOver { seen: Seen::of(record), owner: OwnerToken::random(), lease: LONG }
    }

    /// Takes over what stands there.
    pub(crate) async fn take_over(&self) -> Ownership {
        let record = self.record().await;
        let take = self.take(&record);
        written(self.store.take_over(&take).await);
        Ownership { scope: take.seen.scope, fence: record.fence.next(), owner: take.owner }
    }

    pub(crate) fn new_call(&self, name: &str) -> NewCall {
        let class = CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) };
        NewCall { name: name.into(), class, key: KeyForm::named().key("conformance", &self.scope, name) }
    }

    /// The step that announces a call.
    pub(crate) fn announce(&self, name: &str) -> Step {
        Step { open: Some(self.new_call(name)), ..a_step() }
    }

    pub(crate) async fn step(&self, owner: &Ownership, step: Step) -> SystemTime {
        stored(self.store.step(owner, &step).await)
    }

    pub(crate) async fn finish(&self, owner: &Ownership, end: End) -> SystemTime {
        stored(self.store.finish(owner, &finish(end)).await)
    }

    /// Asserts that all that an owner can write is refused, and changes nothing.
    pub(crate) async fn writes_nothing(&self, owner: &Ownership) {
        let before = self.record().await;
        let step = Step {
            closed: vec![applied("charge", "late")],
            open: Some(self.new_call("late")),
            resource: Some(late()),
            checkpoint: Some(checkpoint("late")),
            lease: LONG,
        };
        assert_eq!(refused(self.store.step(owner, &step).await).as_ref(), Some(&before));
        for end in ends() {
            let finish = Finish { closed: vec![applied("charge", "late")], resource: Some(late()), end };
            assert_eq!(refused(self.store.finish(owner, &finish).await).as_ref(), Some(&before));
        }
        for end in ends().map(AnsweredEnd::Ended).into_iter().chain([still_unknown(true)]) {
            let answered = Answered { closed: vec![applied("charge", "late")], resource: Some(late()), end };
            assert_eq!(refused(self.store.answer(owner, &answered).await).as_ref(), Some(&before));
        }
        assert_eq!(beat(self.store, vec![(owner.clone(), LONG)]).await, [false]);
        assert_eq!(self.record().await, before);
    }
}

pub(crate) fn written(guarded: Result<Guarded, StoreError>) -> SystemTime {
    match guarded {
        Ok(Guarded::Written { now }) => now,
        other => panic!("a guarded write gave {other:?}"),
    }
}

pub(crate) fn changed(guarded: Result<Guarded, StoreError>) -> Option<Record> {
    match guarded {
        Ok(Guarded::Changed(found)) => found.map(|found| found.record),
        other => panic!("a guarded write that must be refused gave {other:?}"),
    }
}

pub(crate) fn stored(fenced: Result<Fenced, StoreError>) -> SystemTime {
    match fenced {
        Ok(Fenced::Written { now }) => now,
        other => panic!("an owner's write gave {other:?}"),
    }
}

pub(crate) fn refused(fenced: Result<Fenced, StoreError>) -> Option<Record> {
    match fenced {
        Ok(Fenced::Refused(found)) => found.map(|found| found.record),
        other => panic!("a write that must be refused gave {other:?}"),
    }
}

/// A beat blocks, so it gets a thread of its own, as the heartbeat has.
pub(crate) async fn beat(store: &dyn Store, live: Vec<(Ownership, Duration)>) -> Vec<bool> {
    let mut pulse = store.pulse().expect("a pulse");
    let (tell, told) = futures_channel::oneshot::channel();
    std::thread::spawn(move || tell.send(pulse.beat(&live)));
    told.await.expect("the beat did not panic").expect("a beat")
}

/// What the store says to sixteen that ask at once.
pub(crate) async fn at_once<T, F: Future<Output = T>>(ask: impl Fn() -> F) -> Vec<T> {
    join_all((0..16).map(|_| ask())).await
}

/// Asks until the answer is yes; a slow machine gets the time that it needs.
pub(crate) async fn eventually(mut ask: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if ask().await {
            return;
        }
        futures_timer::Delay::new(Duration::from_millis(2)).await;
    }
    panic!("it did not come true");
}

pub(crate) fn fresh_tenant() -> Tenant {
    Tenant::new(format!("tenant-{:x}", u128::from_be_bytes(*OwnerToken::random().as_bytes()))).expect("a legal tenant")
}

pub(crate) fn hash(seed: u8) -> CommandHash {
    CommandHash::from_parts(1, 1, [seed; 32]).expect("a legal hash")
}

pub(crate) fn resource() -> ResourceRef {
    ResourceRef { kind: "payment".into(), id: "pay_1".into() }
}

pub(crate) fn checkpoint(name: &str) -> Checkpoint {
    Checkpoint { name: name.into(), version: 3, data: name.into() }
}

pub(crate) fn late() -> ResourceRef {
    ResourceRef { kind: "late".into(), id: "late".into() }
}

pub(crate) fn answer(body: impl Into<Vec<u8>>) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), b"application/json".to_vec())],
        body: Some(body.into()),
    }
}

pub(crate) fn completed() -> End {
    End::Completed { response: answer("{}"), keep: KEEP }
}

pub(crate) fn ends() -> [End; 4] {
    [
        completed(),
        End::FailedReplayable { response: answer("no"), keep: KEEP },
        End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP },
        End::Unknown { ask_in: Duration::ZERO },
    ]
}

/// A final answer that was stored at `at`, to be kept for [`KEEP`].
pub(crate) fn finished(response: StoredResponse, at: SystemTime) -> Finished {
    Finished { response, at, expires_at: at + LONG, body_until: at + LONG, purge_at: at + LONG + LONG }
}

/// Everything that becomes of a record that nobody runs.
pub(crate) fn tendings() -> [Tended; 3] {
    [
        Tended::Released { retry_in: Duration::ZERO, keep: KEEP },
        Tended::Stranded { ask_in: Duration::ZERO },
        Tended::Parked { ask_in: Duration::ZERO },
    ]
}

pub(crate) fn finish(end: End) -> Finish {
    Finish { closed: Vec::new(), resource: None, end }
}

/// T13
pub(crate) fn still_unknown(park: bool) -> AnsweredEnd {
    AnsweredEnd::StillUnknown { ask_in: LONG, park }
}

/// What a worker writes that learned only this.
pub(crate) fn answered(end: AnsweredEnd) -> Answered {
    Answered { closed: Vec::new(), resource: None, end }
}

pub(crate) fn an_audit(scope: &Scope) -> AuditEntry {
    AuditEntry {
        scope: Some(scope.clone()),
        action: "resolve".into(),
        actor: "ada".into(),
        reason: "the bank's statement shows it\u{1f4b6}".into(),
    }
}

pub(crate) fn a_step() -> Step {
    Step { closed: Vec::new(), open: None, resource: None, checkpoint: None, lease: LONG }
}

pub(crate) fn applied(name: &str, outcome: impl Into<Vec<u8>>) -> ClosedCall {
    ClosedCall { name: name.into(), state: CallState::Applied(outcome.into()) }
}

/// A lease that is over before a rival can be refused for it.
pub(crate) const MOMENT: Duration = Duration::from_millis(20);
/// A lease that no test outlives.
pub(crate) const LONG: Duration = Duration::from_secs(60 * 60);
/// Kept for longer than any test.
pub(crate) const KEEP: Keep = Keep { window: LONG, body: LONG, metadata: LONG };

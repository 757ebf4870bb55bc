//! The conformance suite: what every [`Store`] must do, as behaviours that can be run on yours.
//!
//! ```
//! use idem_core::MemoryStore;
//!
//! fn block_on(test: impl Future<Output = ()>) {
//!     futures_executor::block_on(test); // or a runtime's
//! }
//!
//! // One #[test] for each behaviour. The store comes with whatever must live as long as it, a directory for instance.
//! idem_core::conformance!(block_on, async { (MemoryStore::new(), ()) });
//! ```
//!
//! Each behaviour uses scopes that nobody used before, so that stores of one test run may share a database. Leases are
//! short and real; nothing is said of how fast a store is.

pub mod calls;
pub mod claiming;
pub mod content;
pub mod owning;
pub mod taking_over;

use std::time::{Duration, SystemTime};

use futures_util::future::join_all;

use crate::calls::{CallClass, CallState, downstream_key};
use crate::hash::CommandHash;
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::record::{Fence, OwnerToken, Ownership, Record, ResourceRef, Status, StoredResponse};
use crate::store::{
    Claimed, ClosedCall, End, Fenced, Finish, Found, Guarded, NewCall, NewClaim, Seen, Step, Store, StoreError,
    TakeOver,
};

/// Makes one `#[test]` for each behaviour that a store must have.
///
/// The first argument is a function that runs a future to its end, the second an async block that gives the store and
/// what must live as long as it, as a pair.
#[macro_export]
macro_rules! conformance {
    ($block_on:path, $store:expr) => {
        $crate::conformance! { @each $block_on, $store,
            claiming {
                a_first_claim_inserts
                a_second_claim_finds_the_record_unchanged
                a_claim_sent_again_finds_its_own_token
                of_concurrent_claims_one_inserts
                keys_are_compared_byte_by_byte
                tenants_are_compared_byte_by_byte
                one_key_serves_two_operations_and_two_tenants
                the_longest_names_are_kept
                form_and_version_of_the_hash_are_kept
                a_span_may_be_without_end
                times_read_back_as_they_were_answered
            }
            taking_over {
                a_lease_that_is_over_is_taken_over
                a_live_lease_is_not_taken_over
                a_record_that_was_written_since_is_not_taken_over
                an_announcement_made_after_the_decision_wins
                of_announcement_and_take_over_one_wins
                a_record_under_another_fence_is_not_taken_over
                a_record_of_another_command_is_not_taken_over
                a_record_of_another_status_is_not_taken_over
                a_take_over_sent_again_finds_its_own_token
                of_rivals_one_takes_over
                of_rivals_one_retries
                nothing_is_not_taken_over
                what_is_settled_is_not_taken_over
                a_failed_record_that_is_due_is_taken_over
                a_failed_record_that_is_not_due_is_not_taken_over
                a_lease_that_is_over_is_stranded
                a_live_lease_is_not_stranded
                a_record_that_was_written_since_is_not_stranded
                only_a_record_in_progress_is_stranded
                of_rivals_one_strands
                after_stranding_the_late_owner_writes_nothing
            }
            owning {
                a_beat_renews_the_lease
                a_beat_tells_of_each_claim_in_order
                a_beat_renews_many_claims
                a_late_owner_writes_nothing
                an_overrun_lease_without_rival_completes
                an_overrun_lease_without_rival_goes_on
                another_token_writes_nothing
                another_fence_writes_nothing
                nothing_has_no_owner
                a_step_renews_the_lease
                a_step_names_the_resource
                completed_is_kept
                failed_replayable_is_kept
                failed_retryable_is_kept
                unknown_is_kept
                a_finish_sent_again_finds_its_own_end
                what_is_settled_is_not_written
                a_finish_names_the_resource
                a_retried_record_completes
            }
            calls {
                an_announcement_is_kept
                calls_keep_their_order
                a_call_opened_twice_keeps_its_date
                a_step_sent_again_announces_once
                a_withdrawn_call_opens_again
                a_closed_call_stays_closed
                an_outcome_closes_only_its_call
                outcomes_are_kept_byte_by_byte
                a_finish_keeps_outcomes
                a_call_closed_and_opened_in_one_step_is_open
                calls_survive_a_take_over
                a_refused_write_changes_no_call
                records_do_not_share_calls
            }
            content {
                bodies_are_kept_byte_by_byte
                no_body_is_not_an_empty_body
                headers_are_kept_byte_by_byte
                every_status_code_is_kept
            }
        }
    };
    (@each $block_on:path, $store:expr, $($module:ident { $($behaviour:ident)+ })+) => {
        $($(
            #[test]
            fn $behaviour() {
                $block_on(async {
                    let (store, _lives_as_long) = $store.await;
                    $crate::testing::$module::$behaviour(&store).await;
                });
            }
        )+)+
    };
}

/// One scope of a store, with the few moves that behaviours are made of.
struct Case<'a> {
    store: &'a dyn Store,
    scope: Scope,
}

impl<'a> Case<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self::of(store, fresh_tenant(), "create_payment", "key-1")
    }

    fn of(store: &'a dyn Store, tenant: Tenant, operation: &str, key: &str) -> Self {
        Self { store, scope: Scope::new(tenant, operation, key.parse::<IdempotencyKey>().expect("a legal key")) }
    }

    fn new_claim(&self, lease: Duration) -> NewClaim {
        NewClaim { scope: self.scope.clone(), hash: hash(1), owner: OwnerToken::random(), lease }
    }

    /// A first claim: its ownership, and the store's clock.
    async fn claim(&self, lease: Duration) -> (Ownership, SystemTime) {
        let claim = self.new_claim(lease);
        match self.store.claim(&claim).await {
            Ok(Claimed::Inserted { now }) => {
                (Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner }, now)
            }
            other => panic!("a first claim gave {other:?}"),
        }
    }

    /// A first claim whose lease is over.
    async fn overrun(&self) -> Ownership {
        let (owner, _) = self.claim(MOMENT).await;
        self.time_comes().await;
        owner
    }

    /// A first claim that ended so.
    async fn ended(&self, end: End) -> Ownership {
        let (owner, _) = self.claim(LONG).await;
        self.finish(&owner, end).await;
        owner
    }

    /// The record as a stranger's claim finds it.
    async fn found(&self) -> Found {
        match self.store.claim(&self.new_claim(LONG)).await {
            Ok(Claimed::Found(found)) => *found,
            other => panic!("a second claim gave {other:?}"),
        }
    }

    async fn record(&self) -> Record {
        self.found().await.record
    }

    /// Waits until the lease is over, or the next attempt due, by the store's clock.
    async fn time_comes(&self) {
        eventually(async || {
            let Found { record, now } = self.found().await;
            match record.status {
                Status::InProgress { locked_until: then } | Status::FailedRetryable { next_attempt_at: then, .. } => {
                    then <= now
                }
                other => panic!("{} waits for nothing", other.name()),
            }
        })
        .await;
    }

    /// Waits until the store's clock shows another time than `then`.
    async fn time_passes(&self, then: SystemTime) {
        eventually(async || then < self.found().await.now).await;
    }

    fn take(&self, record: &Record) -> TakeOver {
        TakeOver { seen: Seen::of(record), owner: OwnerToken::random(), lease: LONG }
    }

    /// Takes over what stands there.
    async fn take_over(&self) -> Ownership {
        let record = self.record().await;
        let take = self.take(&record);
        written(self.store.take_over(&take).await);
        Ownership { scope: take.seen.scope, fence: record.fence.next(), owner: take.owner }
    }

    fn new_call(&self, name: &str) -> NewCall {
        let class = CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) };
        NewCall { name: name.into(), class, key: downstream_key("conformance", &self.scope, name) }
    }

    /// The step that announces a call.
    fn announce(&self, name: &str) -> Step {
        Step { open: Some(self.new_call(name)), ..a_step() }
    }

    async fn step(&self, owner: &Ownership, step: Step) -> SystemTime {
        stored(self.store.step(owner, &step).await)
    }

    async fn finish(&self, owner: &Ownership, end: End) -> SystemTime {
        stored(self.store.finish(owner, &finish(end)).await)
    }

    /// Asserts that all that an owner can write is refused, and changes nothing.
    async fn writes_nothing(&self, owner: &Ownership) {
        let before = self.record().await;
        let step = Step {
            closed: vec![applied("charge", "late")],
            open: Some(self.new_call("late")),
            resource: Some(late()),
            lease: LONG,
        };
        assert_eq!(refused(self.store.step(owner, &step).await).as_ref(), Some(&before));
        for end in ends() {
            let finish = Finish { closed: vec![applied("charge", "late")], resource: Some(late()), end };
            assert_eq!(refused(self.store.finish(owner, &finish).await).as_ref(), Some(&before));
        }
        assert_eq!(beat(self.store, vec![(owner.clone(), LONG)]).await, [false]);
        assert_eq!(self.record().await, before);
    }
}

fn written(guarded: Result<Guarded, StoreError>) -> SystemTime {
    match guarded {
        Ok(Guarded::Written { now }) => now,
        other => panic!("a guarded write gave {other:?}"),
    }
}

fn changed(guarded: Result<Guarded, StoreError>) -> Option<Record> {
    match guarded {
        Ok(Guarded::Changed(found)) => found.map(|found| found.record),
        other => panic!("a guarded write that must be refused gave {other:?}"),
    }
}

fn stored(fenced: Result<Fenced, StoreError>) -> SystemTime {
    match fenced {
        Ok(Fenced::Written { now }) => now,
        other => panic!("an owner's write gave {other:?}"),
    }
}

fn refused(fenced: Result<Fenced, StoreError>) -> Option<Record> {
    match fenced {
        Ok(Fenced::Refused(found)) => found.map(|found| found.record),
        other => panic!("a write that must be refused gave {other:?}"),
    }
}

/// A beat blocks, so it gets a thread of its own, as the heartbeat has.
async fn beat(store: &dyn Store, live: Vec<(Ownership, Duration)>) -> Vec<bool> {
    let mut pulse = store.pulse().expect("a pulse");
    let (tell, told) = futures_channel::oneshot::channel();
    std::thread::spawn(move || tell.send(pulse.beat(&live)));
    told.await.expect("the beat did not panic").expect("a beat")
}

/// What the store says to sixteen that ask at once.
async fn at_once<T, F: Future<Output = T>>(ask: impl Fn() -> F) -> Vec<T> {
    join_all((0..16).map(|_| ask())).await
}

/// Asks until the answer is yes; a slow machine gets the time that it needs.
async fn eventually(mut ask: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if ask().await {
            return;
        }
        futures_timer::Delay::new(Duration::from_millis(2)).await;
    }
    panic!("it did not come true");
}

fn fresh_tenant() -> Tenant {
    Tenant::new(format!("tenant-{:x}", u128::from_be_bytes(*OwnerToken::random().as_bytes()))).expect("a legal tenant")
}

fn hash(seed: u8) -> CommandHash {
    CommandHash::from_parts(1, 1, [seed; 32]).expect("a legal hash")
}

fn resource() -> ResourceRef {
    ResourceRef { kind: "payment".into(), id: "pay_1".into() }
}

fn late() -> ResourceRef {
    ResourceRef { kind: "late".into(), id: "late".into() }
}

fn answer(body: impl Into<Vec<u8>>) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), b"application/json".to_vec())],
        body: Some(body.into()),
    }
}

fn completed() -> End {
    End::Completed { response: answer("{}"), window: LONG }
}

fn ends() -> [End; 4] {
    [
        completed(),
        End::FailedReplayable { response: answer("no"), window: LONG },
        End::FailedRetryable { retry_in: Duration::ZERO, window: LONG },
        End::Unknown { ask_in: Duration::ZERO },
    ]
}

fn finish(end: End) -> Finish {
    Finish { closed: Vec::new(), resource: None, end }
}

fn a_step() -> Step {
    Step { closed: Vec::new(), open: None, resource: None, lease: LONG }
}

fn applied(name: &str, outcome: impl Into<Vec<u8>>) -> ClosedCall {
    ClosedCall { name: name.into(), state: CallState::Applied(outcome.into()) }
}

/// A lease that is over before a rival can be refused for it.
const MOMENT: Duration = Duration::from_millis(20);
/// A lease that no test outlives.
const LONG: Duration = Duration::from_secs(60 * 60);

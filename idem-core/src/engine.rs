//! The engine: the whole way of one request over a store. Insert first; run once; or answer from the record.

mod answer;
mod ask;
mod builder;
mod call;
mod checkpoint;
mod claim;
mod conduct;
mod evidence;
mod local;
mod namespace;
mod own_id;
mod parts;
mod rebuilt;
mod register;
mod silence;
mod tell;
mod transaction;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

pub use answer::{Answer, Original, Outcome};
pub(crate) use ask::Came;
pub use builder::{ConfigError, EngineBuilder};
pub use call::{Call, NotCalled};
pub use checkpoint::UnreadableCheckpoint;
pub use claim::Claim;
use claim::Left;
pub use local::LocalClaim;
pub use namespace::OtherNamespace;
pub use own_id::NoOwnId;
pub use rebuilt::rebuilt;
pub use register::RegisterError;
#[cfg(feature = "tokio")]
pub(crate) use silence::SILENCE;
pub use transaction::{Committed, NotCheckpointed, NotCommitted};

use crate::calls::{CallRecord, CallSpec, CallState};
use crate::clock::Clock;
use crate::command::IdempotentCommand;
use crate::decide::{Decision, decide};
use crate::events::{Event, How, Observer, RecoveryStep};
use crate::heartbeat::Heartbeat;
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::reconciler::Settles;
use crate::record::{Fence, OwnerToken, Ownership, Record, Status};
use crate::reply::{Failure, Reply};
use crate::rules::Rules;
use crate::store::{Claimed, Guarded, NewClaim, Seen, Store, StoreError, TakeOver, Tended};

/// idem over one store. Clones share it; make one for a process.
///
/// ```
/// use idem_core::{Engine, IdempotentCommand, MemoryStore, Outcome, Reply, Tenant};
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "open_account", version = 1)]
/// struct OpenAccount { holder: String }
///
/// # futures_executor::block_on(async {
/// let engine = Engine::builder(MemoryStore::new()).build()?;
/// let tenant = Tenant::new("acme")?;
/// let command = OpenAccount { holder: "Ada".into() };
///
/// let key = "open-ada-1".parse()?;
/// let first = engine.run(&tenant, &key, &command, |claim| async move {
///     Ok(Reply::status(201).body(claim.derived_id("acc")))
/// }).await?;
/// let second = engine.run(&tenant, &key, &command, |_| async { unreachable!("it ran before") }).await?;
/// assert!(matches!(first, Outcome::Done { .. }));
/// assert!(matches!(second, Outcome::Second(idem_core::Answer::Replay { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    heartbeat: Heartbeat,
    namespace: String,
    settled: namespace::Settled,
    lookout: silence::Lookout,
    /// How far recovery has come.
    recovering: Mutex<Option<Reached>>,
    rules: Rules,
    operations: HashMap<String, Rules>,
    /// (operation, call) and what its provider promises.
    calls: HashMap<(String, String), CallSpec>,
    kept_headers: Vec<String>,
    call_refused: Box<dyn Fn(&str) -> Reply + Send + Sync>,
    forbidden_is_final: bool,
    reconcilers: HashMap<(String, String), Arc<dyn Settles>>,
    observer: Arc<dyn Observer>,
}

/// The last record that a page of recovery ended with, and when the first page of its round was read.
#[derive(Clone)]
pub(crate) struct Reached {
    pub(crate) after: Record,
    pub(crate) began: SystemTime,
}

/// What a request found when it came.
#[derive(Debug)]
pub enum Begin {
    /// It owns the record: the work runs now, by [`Engine::conduct`].
    Run(Claim),
    /// The record has an answer.
    Decided(Answer),
}

impl Engine {
    /// Starts an engine over a store.
    pub fn builder(store: impl Store + 'static) -> EngineBuilder {
        EngineBuilder::new(Arc::new(store))
    }

    /// Claims the key for the command, or tells what a second request gets.
    ///
    /// The first request of an engine that has registered nothing settles the [namespace](EngineBuilder::namespace) first.
    ///
    /// # Errors
    /// [`StoreError`], also for a store that belongs to another namespace ([`OtherNamespace`] is the source then): then
    /// nothing ran. Fail closed; the client may send the same request again.
    pub async fn begin<C: IdempotentCommand>(
        &self,
        tenant: &Tenant,
        key: &IdempotencyKey,
        command: &C,
    ) -> Result<Begin, StoreError> {
        let inner = &self.inner;
        let rules = inner.rules(C::OPERATION);
        let new = NewClaim {
            scope: Scope::new(tenant.clone(), C::OPERATION, key.clone()),
            hash: command.command_hash(),
            owner: OwnerToken::random(),
            lease: rules.lease,
        };
        let decided = |answer, age| inner.decided(C::OPERATION, answer, age);
        let failed = |error| inner.failed(error);
        inner.own_namespace().await.map_err(failed)?;
        inner.look_for_workers().await;
        let mut found = match inner.claim(&new).await.map_err(failed)? {
            Claimed::Inserted { now } => {
                let ownership = Ownership { scope: new.scope, fence: Fence::FIRST, owner: new.owner };
                let claim = Claim::new(inner, ownership, new.hash, 1, Left::default(), now);
                return Ok(inner.runs(claim, How::First));
            }
            Claimed::Found(found) => found,
            Claimed::Held => return Ok(decided(Answer::InProgress { retry_after: MOMENT }, Duration::ZERO)),
        };
        let mut is_asked = false;
        for _ in 0..ROUNDS {
            // Our own name in the record: an earlier try was written, and only its answer was lost.
            if found.record.owner == new.owner && matches!(found.record.status, Status::InProgress { .. }) {
                let how = if found.record.attempts == 1 { How::First } else { How::TakeOver };
                let claim = inner.resume(found.record, found.now).await.map_err(failed)?;
                return Ok(inner.runs(claim, how));
            }
            let age = found.now.duration_since(found.record.created_at).unwrap_or_default();
            let verdict = command.verdict(&found.record.hash);
            let decision = decide(&found.record, verdict, found.now, rules);
            let changed = match decision {
                Decision::TakeOver => {
                    let take = TakeOver { seen: Seen::of(&found.record), owner: new.owner, lease: rules.lease };
                    match inner.take_over(&take).await.map_err(failed)? {
                        Guarded::Written { now } => {
                            let how = match found.record.status {
                                Status::InProgress { .. } => How::TakeOver,
                                _ => How::Retry,
                            };
                            let record = Record {
                                fence: found.record.fence.next(),
                                owner: new.owner,
                                attempts: found.record.attempts + 1,
                                ..found.record
                            };
                            let claim = inner.resume(record, now).await.map_err(failed)?;
                            return Ok(inner.runs(claim, how));
                        }
                        Guarded::Changed(changed) => changed,
                    }
                }
                Decision::Strand => {
                    let ask_in = rules.backoff;
                    let stranded = Tended::Stranded { ask_in };
                    match inner.store.tend(&Seen::of(&found.record), &stranded).await.map_err(failed)? {
                        Guarded::Written { .. } => {
                            let (operation, step) = (C::OPERATION, RecoveryStep::Stranded);
                            inner.observer.observe(&Event::Recovered { operation, step });
                            return Ok(decided(Answer::OutcomeUnknown { retry_after: ask_in.max(MOMENT) }, age));
                        }
                        Guarded::Changed(changed) => changed,
                    }
                }
                Decision::Ask if !is_asked => {
                    is_asked = true;
                    // What goes wrong with the question is the worker's to try again, and told to the observer.
                    if let Ok(false) | Err(_) = self.ask_for_a_request(&found.record, rules).await.map_err(failed) {
                        return Ok(decided(answer(&found.record, decision), age));
                    }
                    inner.store.look(&new.scope).await.map_err(failed)?
                }
                decision => return Ok(decided(answer(&found.record, decision), age)),
            };
            found = match changed {
                Some(changed) => changed,
                // Gone since it was read, by a sweeper: the client's next try starts anew.
                None => break,
            };
        }
        // Rivals change the record as fast as it is read: one of them runs.
        Ok(decided(Answer::InProgress { retry_after: MOMENT }, Duration::ZERO))
    }

    /// A claim for a command that came without a key: nothing is looked up and nothing is stored, its derived ids and
    /// downstream keys are random, and its calls run unannounced. **Nothing protects it**: sent twice, it runs twice.
    ///
    /// ```
    /// # use idem_core::{Engine, IdempotentCommand, MemoryStore, Outcome, Reply, Tenant};
    /// # #[derive(IdempotentCommand)]
    /// # #[idem(operation = "open_account", version = 1)]
    /// # struct OpenAccount { holder: String }
    /// # futures_executor::block_on(async {
    /// let store = MemoryStore::new();
    /// let engine = Engine::builder(store.clone()).build()?;
    /// let claim = engine.begin_unkeyed(&Tenant::new("acme")?, &OpenAccount { holder: "Ada".into() });
    /// let ended = engine.conduct(claim, |_| async { Ok(Reply::status(201)) }, |_| ()).await;
    /// assert!(matches!(ended, Outcome::Done { .. }) && store.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn begin_unkeyed<C: IdempotentCommand>(&self, tenant: &Tenant, command: &C) -> Claim {
        let owner = OwnerToken::random();
        let scope = Scope::new(tenant.clone(), C::OPERATION, IdempotencyKey::random());
        let ownership = Ownership { scope, fence: Fence::FIRST, owner };
        Claim::unrecorded(&self.inner, ownership, command.command_hash())
    }

    /// [`Self::begin`] and [`Self::conduct`] in one: the work runs at most where the record allows it.
    ///
    /// The future must not be dropped half-way: work that is dropped is work whose lease has to run out first. Spawn it
    /// where the caller may go away.
    ///
    /// # Errors
    /// [`StoreError`] where the claim itself failed: then nothing ran.
    pub async fn run<C, W, F>(
        &self,
        tenant: &Tenant,
        key: &IdempotencyKey,
        command: &C,
        work: W,
    ) -> Result<Outcome, StoreError>
    where
        C: IdempotentCommand,
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        match self.begin(tenant, key, command).await? {
            Begin::Decided(answer) => Ok(Outcome::Second(answer)),
            Begin::Run(claim) => Ok(self.conduct(claim, work, |_| ()).await),
        }
    }
}

impl Inner {
    fn rules(&self, operation: &str) -> &Rules {
        self.operations.get(operation).unwrap_or(&self.rules)
    }

    fn declared(&self, operation: &str, call: &str) -> Option<&CallSpec> {
        self.calls.get(&(operation.to_owned(), call.to_owned()))
    }

    fn call_refused(&self, call: &str) -> Reply {
        (self.call_refused)(call)
    }

    /// A claim that goes on from what earlier attempts left, and from what was learned about their calls since.
    async fn resume(self: &Arc<Self>, record: Record, now: SystemTime) -> Result<Claim, StoreError> {
        let is_known = |call: &CallRecord| matches!(call.state, CallState::Applied(_) | CallState::Rejected(_));
        let learned = match record.calls.iter().all(is_known) {
            true => Vec::new(),
            false => self.store.learned(&record.scope).await?,
        };
        let left = Left {
            calls: record.calls.clone(),
            checkpoint: record.checkpoint.clone(),
            resource: record.resource.clone(),
        };
        let claim = Claim::new(self, record.ownership(), record.hash, record.attempts, left, now);
        claim.learn(&learned).await;
        Ok(claim)
    }

    /// A claim whose answer was lost is sent once more: under the same owner token it cannot own twice.
    async fn claim(&self, new: &NewClaim) -> Result<Claimed, StoreError> {
        match self.store.claim(new).await {
            Err(error) if error.is_transient() => self.store.claim(new).await,
            claimed => claimed,
        }
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        match self.store.take_over(take).await {
            Err(error) if error.is_transient() => self.store.take_over(take).await,
            taken => taken,
        }
    }
}

/// What a decision that needs no write says to the client.
fn answer(record: &Record, decision: Decision) -> Answer {
    let resource = record.resource.clone();
    match (decision, &record.status) {
        (Decision::Replay, Status::Completed(finished) | Status::FailedReplayable(finished)) => {
            Answer::Replay { response: finished.response.clone(), expires_at: finished.expires_at }
        }
        (Decision::NotKept, Status::Completed(finished) | Status::FailedReplayable(finished)) => {
            let expires_at = finished.expires_at;
            Answer::NotKept { response: finished.response.clone(), resource, expires_at }
        }
        (Decision::Mismatch { safe_new_key }, _) => Answer::Mismatch(Original::of(record, safe_new_key)),
        (Decision::InProgress { retry_after }, _) => Answer::InProgress { retry_after },
        (Decision::RetryLater { retry_after }, _) => Answer::RetryLater { retry_after },
        (Decision::OutcomeUnknown { retry_after }, _) => Answer::OutcomeUnknown { retry_after },
        (Decision::Ask, _) => Answer::OutcomeUnknown { retry_after: MOMENT },
        (Decision::Unresolved, _) => Answer::Unresolved { resource },
        (Decision::Expired, _) => Answer::Expired { resource },
        (Decision::ContractUnknown { retry_after }, _) => Answer::ContractUnknown { retry_after },
        (Decision::ContractRetired, _) => Answer::ContractRetired { resource },
        // A write that was not this request's to make (it lost its record meanwhile): the next request makes it.
        (Decision::TakeOver | Decision::Strand | Decision::Replay | Decision::NotKept, _) => {
            Answer::InProgress { retry_after: MOMENT }
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("namespace", &self.inner.namespace).finish_non_exhaustive()
    }
}

/// How often a request decides again when the record changes under it.
const ROUNDS: usize = 4;

/// The shortest wait that a client is told: `Retry-After` counts whole seconds.
const MOMENT: Duration = Duration::from_secs(1);

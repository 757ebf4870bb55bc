//! What the work holds while it owns its record: announced calls, derived ids, signs of a lost claim.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::lock::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::calls::{CallRecord, CallState, DownstreamKey, resource_id};
use crate::engine::Inner;
use crate::engine::call::{Call, NotCalled};
use crate::engine::transaction::{Committing, NotCheckpointed};
use crate::hash::CommandHash;
use crate::heartbeat::Live;
use crate::key::Scope;
use crate::record::{Checkpoint, Ownership, ResourceRef};
use crate::reply::{CallError, Failure};
use crate::store::{ClosedCall, Dated, Evidence, Fenced, NewCall, Step, StoreError};

/// Ownership of one record while the work runs. Clones are handles of the same claim.
///
/// Whoever holds it decides nothing about time: the heartbeat renews its lease, and a write after somebody else took
/// over is refused by the fence.
#[derive(Clone)]
pub struct Claim {
    pub(super) engine: Arc<Inner>,
    pub(super) live: Arc<Live>,
    hash: CommandHash,
    attempt: u32,
    /// Whether there is a record at all; a request without a key has none.
    pub(super) recorded: bool,
    /// The store's clock and this process's, read together when the record was claimed.
    anchor: (SystemTime, SystemTime),
    /// What an earlier attempt left.
    checkpoint: Option<Arc<Checkpoint>>,
    pub(super) progress: Arc<Mutex<Progress>>,
}

/// What earlier attempts left in the record.
#[derive(Default)]
pub(super) struct Left {
    pub(super) calls: Vec<CallRecord>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) resource: Option<ResourceRef>,
}

/// What the claim knows of its record, and what it still has to write.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) calls: Vec<CallRecord>,
    /// Calls whose outcome this very attempt has learned.
    made: BTreeSet<String>,
    /// Outcomes that ride on the next write.
    pub(super) unwritten: Vec<ClosedCall>,
    pub(super) resource: Option<ResourceRef>,
    /// Calls announced in a transaction of the application's, not known to be committed yet.
    pub(super) joined: Vec<String>,
    /// The end that was written in a transaction of the application's.
    pub(super) committing: Option<Committing>,
}

impl Progress {
    /// A call is open no longer; the next write says so.
    pub(super) fn close(&mut self, name: &str, state: CallState) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.name == name) {
            call.state = state.clone();
        }
        if state != CallState::Withdrawn {
            self.made.insert(name.to_owned());
        }
        self.unwritten.push(ClosedCall { name: name.to_owned(), state });
    }

    /// The outcomes that this very attempt learned and did not write; nobody writes them after this.
    pub(super) fn take_made(&mut self) -> Vec<(DownstreamKey, CallState)> {
        let Self { calls, made, unwritten, .. } = self;
        let told = std::mem::take(unwritten).into_iter();
        let made = told.filter(|closed| closed.state != CallState::Withdrawn && made.contains(&closed.name));
        let key = |name: &str| calls.iter().find(|call| call.name == name).map(|call| call.key.clone());
        made.filter_map(|closed| Some((key(&closed.name)?, closed.state))).collect()
    }
}

impl Claim {
    /// The claim on a record that the store has just given to `ownership`, at its `now`.
    pub(super) fn new(
        engine: &Arc<Inner>,
        ownership: Ownership,
        hash: CommandHash,
        attempt: u32,
        left: Left,
        now: SystemTime,
    ) -> Self {
        let Left { calls, checkpoint, resource } = left;
        let operation = ownership.scope.operation();
        let live = Arc::new(Live::new(ownership.clone(), engine.rules(operation)));
        engine.heartbeat.watch(&live);
        Self {
            engine: Arc::clone(engine),
            live,
            hash,
            attempt,
            recorded: true,
            anchor: (now, engine.clock.now()),
            checkpoint: checkpoint.map(Arc::new),
            progress: Arc::new(Mutex::new(Progress { calls, resource, ..Progress::default() })),
        }
    }

    /// Takes what is known of calls from outside of their attempts: one that happened is not made again, whether it is
    /// open still or was taken for one that never arrived.
    pub(super) async fn learn(&self, learned: &[Dated<Evidence>]) {
        let mut progress = self.progress.lock().await;
        let Progress { calls, unwritten, .. } = &mut *progress;
        for call in calls.iter_mut().filter(|call| matches!(call.state, CallState::Open | CallState::Withdrawn)) {
            let told = learned.iter().map(|learned| &learned.what);
            let told = told.filter(|evidence| evidence.key == call.key).map(|evidence| &evidence.state);
            let Some(applied) = told.into_iter().find(|state| matches!(state, CallState::Applied(_))) else { continue };
            if call.is_open() {
                unwritten.push(ClosedCall { name: call.name.clone(), state: applied.clone() });
            }
            call.state = applied.clone();
        }
    }

    /// A claim on nothing: its name is used once, and no store hears of it.
    pub(super) fn unrecorded(engine: &Arc<Inner>, ownership: Ownership, hash: CommandHash) -> Self {
        let live = Arc::new(Live::new(ownership.clone(), engine.rules(ownership.scope.operation())));
        let now = engine.clock.now();
        Self {
            engine: Arc::clone(engine),
            live,
            hash,
            attempt: 1,
            recorded: false,
            anchor: (now, now),
            checkpoint: None,
            progress: Arc::default(),
        }
    }

    /// Makes an announced call: announces it, runs `make` with the downstream key, and keeps the outcome.
    ///
    /// A call that an earlier attempt finished is not made again: its stored outcome comes back. The outcome is
    /// written with the claim's next write. An expected business answer (card declined) is a `T`, not an error.
    ///
    /// # Errors
    /// [`Failure`], to be passed on with `?`: what the error of `make` says of itself ([`CallError`]), or
    /// [`NotCalled`] where nothing left.
    pub async fn call<T, E, F, Fut>(&self, name: &str, make: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        E: CallError,
        F: FnOnce(DownstreamKey) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.open(name).await?.run(make).await
    }

    /// Announces a call, durably and fenced, and gives the handle that it is made with.
    ///
    /// # Errors
    /// [`NotCalled`]; nothing left.
    pub async fn open(&self, name: &str) -> Result<Call, NotCalled> {
        let mut progress = self.progress.lock().await;
        let (before, new) = match self.announcing(&progress, name)? {
            Announcing::Done(done) => return Ok(Call::new(self.clone(), done, false)),
            Announcing::New(before, new) => (before, new),
        };
        match self.write(&mut progress, Some(new.clone()), None).await {
            Ok(Some(now)) => self.announced(&mut progress, before, new, now),
            Ok(None) => Err(NotCalled::Lost(name.to_owned())),
            Err(source) => {
                // The announcement may have been stored all the same. Nothing left, so it is taken back, unless an
                // earlier attempt has opened it: what that one did, nobody knows.
                if before.is_none_or(|call| !call.is_open()) {
                    progress.close(name, CallState::Withdrawn);
                }
                Err(NotCalled::NotAnnounced { call: name.to_owned(), source })
            }
        }
    }

    /// What announcing a call takes, if it is declared.
    pub(super) fn announcing(&self, progress: &Progress, name: &str) -> Result<Announcing, NotCalled> {
        let spec = self.engine.declared(self.scope().operation(), name).ok_or_else(|| NotCalled::Undeclared {
            operation: self.scope().operation().to_owned(),
            call: name.to_owned(),
        })?;
        let before = progress.calls.iter().find(|call| call.name == name).cloned();
        if let Some(done) =
            before.as_ref().filter(|call| matches!(call.state, CallState::Applied(_) | CallState::Rejected(_)))
        {
            // Of an earlier attempt: its outcome stands for the call. Of this one: another effect under one name, which
            // would be taken for the first.
            if progress.made.contains(name) {
                return Err(NotCalled::Twice(name.to_owned()));
            }
            return Ok(Announcing::Done(done.clone()));
        }
        let derived = || spec.key_form.key(&self.engine.namespace, self.scope(), name);
        let key = before.as_ref().map_or_else(derived, |call| call.key.clone());
        Ok(Announcing::New(before, NewCall { name: name.to_owned(), class: spec.class, key }))
    }

    /// The handle of a call whose announcement was written at `now`.
    pub(super) fn announced(
        &self,
        progress: &mut Progress,
        before: Option<CallRecord>,
        new: NewCall,
        now: SystemTime,
    ) -> Result<Call, NotCalled> {
        match before {
            Some(open) if open.is_open() => {
                if !open.may_repeat(now, self.engine.rules(self.scope().operation()).margin()) {
                    return Err(NotCalled::TooOld(new.name));
                }
                Ok(Call::new(self.clone(), open, false))
            }
            _ => {
                let call = CallRecord {
                    name: new.name,
                    class: new.class,
                    key: new.key,
                    state: CallState::Open,
                    opened_at: now,
                };
                progress.calls.retain(|before| before.name != call.name);
                progress.calls.push(call.clone());
                Ok(Call::new(self.clone(), call, true))
            }
        }
    }

    /// Keeps how far the work has come, durably and fenced, with the outcomes of calls made since the last write: the
    /// next attempt finds it, [`Self::resume_from`]. `version` is that of the data's format.
    ///
    /// # Errors
    /// [`NotCheckpointed`].
    pub async fn checkpoint<T: Serialize>(&self, name: &str, version: u32, data: &T) -> Result<(), NotCheckpointed> {
        let checkpoint = NotCheckpointed::written(name, version, data)?;
        match self.write(&mut *self.progress.lock().await, None, Some(checkpoint)).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(NotCheckpointed::Lost),
            Err(source) => Err(NotCheckpointed::NotStored(source)),
        }
    }

    /// The last checkpoint of an earlier attempt: what this one may start from. [`Self::resume_from`] reads it.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_deref()
    }

    /// Says what the command makes, `claim.makes("payment", id)`: a later request under the key that gets no answer
    /// is pointed to it. Written with the claim's next write. An id of the application's own, which is another one each
    /// time it is made, is had from [`Self::own_id`].
    pub async fn makes(&self, kind: impl Into<String>, id: impl Into<String>) {
        self.progress.lock().await.resource = Some(ResourceRef { kind: kind.into(), id: id.into() });
    }

    /// An id for what the command makes, `pay_` and 26 characters: the same in every attempt, on every node, and
    /// even after a failover lost the record.
    #[must_use]
    pub fn derived_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", resource_id(&self.engine.namespace, self.scope()))
    }

    /// What the command means, as the record says it. It belongs into the business row: whoever finds a row under
    /// [`Self::derived_id`] with another hash has a key that was used again.
    #[must_use]
    pub fn command_hash(&self) -> CommandHash {
        self.hash
    }

    /// Which attempt this is; from 2 on, an earlier one may have done some of the work.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Tenant, operation and key.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.live.ownership.scope
    }

    /// Whether somebody else is known to own the record now. What is written from here on is refused.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.live.is_lost()
    }

    /// Waits until the claim is known to be lost; for a `select` around long work. Never ends otherwise. After `max_run`
    /// the lease is not renewed any more, but the record is still looked at as often as before: this ends soon after
    /// somebody has taken over.
    pub async fn lost(&self) {
        self.live.lost().await;
    }

    /// The store's clock, as far as it can be told without asking.
    pub(super) fn store_now(&self) -> SystemTime {
        let (store, local) = self.anchor;
        store + self.engine.clock.now().duration_since(local).unwrap_or_default()
    }

    /// T3 with all that is unwritten.
    pub(super) fn step(&self, progress: &Progress, open: Option<NewCall>, checkpoint: Option<Checkpoint>) -> Step {
        Step {
            closed: progress.unwritten.clone(),
            open,
            resource: progress.resource.clone(),
            checkpoint,
            lease: self.engine.rules(self.scope().operation()).lease,
        }
    }

    /// Writes that step; the store's clock, or `None` where the claim was lost.
    pub(super) async fn write(
        &self,
        progress: &mut Progress,
        open: Option<NewCall>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<Option<SystemTime>, StoreError> {
        if !self.recorded {
            progress.unwritten.clear();
            return Ok(Some(self.store_now()));
        }
        let step = self.step(progress, open, checkpoint);
        let store = &self.engine.store;
        let mut wait = FIRST_RETRY;
        let written = loop {
            match store.step(&self.live.ownership, &step).await {
                Err(error) if error.is_transient() && wait <= LAST_RETRY => {
                    self.engine.clock.sleep(wait).await;
                    wait *= 4;
                }
                written => break written?,
            }
        };
        Ok(match written {
            Fenced::Written { now } => {
                progress.unwritten.clear();
                Some(now)
            }
            Fenced::Refused(_) => {
                self.live.lose();
                self.keep_late(progress).await;
                None
            }
        })
    }
}

/// What announcing a call comes to.
pub(super) enum Announcing {
    /// Nothing: an earlier attempt made it.
    Done(CallRecord),
    /// This is written; before it, the call stood so.
    New(Option<CallRecord>, NewCall),
}

/// An announcement that cannot be stored holds up the work, so it is tried three times within half a second.
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(25);
pub(super) const LAST_RETRY: Duration = Duration::from_millis(400);

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("ownership", &self.live.ownership)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

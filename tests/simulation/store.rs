//! A store in front of another: slow, away, or away with the answer.

use std::any::Any;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{
    Answered, AuditEntry, Claimed, Claiming, Dated, Evidence, Fenced, Finish, Found, Guarded, Keeping, Mark, NewClaim,
    Oldest, Owning, Pulse, Recovering, Seen, Step, Store, StoreError, SweepOrder, Sweeping, Swept, TakeOver, Tended,
    Verdicted,
};
use idem_core::{MemoryStore, Ownership, Record, Scope};

use crate::chance::{Chance, Kind};

/// Clones share their faults.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    pub(crate) inner: MemoryStore,
    pub(crate) chance: Chance,
}

impl FaultyStore {
    async fn meet<T>(
        &self,
        what: &'static str,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.chance.linger(Duration::from_millis(20)).await;
        if self.chance.wrong(5) {
            self.chance.tell(Kind::Fail, || format!("store: {what}"));
            return Err(gone());
        }
        let done = run.await;
        if self.chance.wrong(5) {
            self.chance.tell(Kind::Info, || format!("store: {what}"));
            return Err(gone());
        }
        done
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)))
}

impl Store for FaultyStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[async_trait]
impl Claiming for FaultyStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        self.meet("claim", self.inner.claim(claim)).await
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        self.meet("take_over", self.inner.take_over(take)).await
    }

    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError> {
        self.meet("look", self.inner.look(scope)).await
    }

    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError> {
        self.meet("tend", self.inner.tend(seen, to)).await
    }
}

#[async_trait]
impl Owning for FaultyStore {
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        self.meet("step", self.inner.step(owner, step)).await
    }

    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        self.meet("finish", self.inner.finish(owner, finish)).await
    }

    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError> {
        self.inner.pulse()
    }
}

#[async_trait]
impl Recovering for FaultyStore {
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError> {
        self.meet("due", self.inner.due(grace, after, limit)).await
    }

    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError> {
        self.inner.unsettled(after, limit).await
    }

    async fn oldest(&self) -> Result<Oldest, StoreError> {
        self.inner.oldest().await
    }

    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        self.meet("take_to_ask", self.inner.take_to_ask(take)).await
    }

    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        self.meet("answer", self.inner.answer(owner, answered)).await
    }

    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError> {
        self.inner.resolve(seen, verdict, audit).await
    }

    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError> {
        self.meet("learn", self.inner.learn(evidence)).await
    }

    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError> {
        self.meet("learned", self.inner.learned(scope)).await
    }
}

#[async_trait]
impl Sweeping for FaultyStore {
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError> {
        self.meet("sweep", self.inner.sweep(order)).await
    }
}

#[async_trait]
impl Keeping for FaultyStore {
    async fn contracts(&self, operation: &str, version: u32) -> Result<Vec<String>, StoreError> {
        self.inner.contracts(operation, version).await
    }

    async fn add_contract(&self, operation: &str, version: u32, number: u32, text: &str) -> Result<bool, StoreError> {
        self.inner.add_contract(operation, version, number, text).await
    }

    async fn settle_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.inner.settle_setting(name, value).await
    }

    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.inner.settings().await
    }

    async fn sign_of_life(&self) -> Result<(), StoreError> {
        self.inner.sign_of_life().await
    }

    async fn silence(&self) -> Result<Option<Duration>, StoreError> {
        self.inner.silence().await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        self.inner.audit(entry).await
    }

    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError> {
        self.inner.audited(scope).await
    }
}

//! A store in front of another that fails, or waits, when it is told to.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{
    Answered, AuditEntry, Claimed, Claiming, Dated, Evidence, Fenced, Finish, Found, Guarded, Keeping, Mark, NewClaim,
    Oldest, Owning, Pulse, Recovering, Seen, Step, Store, StoreError, SweepOrder, Sweeping, Swept, TakeOver, Tended,
    Verdicted,
};
use idem_core::{Ownership, Record, Scope};
use tokio::sync::Semaphore;

/// Which request of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Claim,
    TakeOver,
    Tend,
    Step,
    Finish,
    Beat,
    Due,
    Learn,
    Resolve,
    Sweep,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    /// It does not arrive.
    Before,
    /// It is done, and its answer does not arrive.
    After,
    /// It panics.
    Panics,
}

/// The store; clones share their faults.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    opaque: bool,
    trip: Duration,
    faults: Arc<Mutex<VecDeque<(Request, Fails)>>>,
    audits: Arc<Mutex<Vec<AuditEntry>>>,
    holds: Arc<Mutex<Vec<(Request, Hold)>>>,
    requests: Arc<AtomicUsize>,
}

/// A request that is on its way until it is let go.
#[derive(Clone)]
pub(crate) struct Hold {
    arrived: Arc<Semaphore>,
    go: Arc<Semaphore>,
}

impl Hold {
    pub(crate) async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.go.add_permits(1);
    }
}

impl FaultyStore {
    pub(crate) fn over(store: impl Store + 'static) -> Self {
        Self {
            inner: Arc::new(store),
            opaque: false,
            trip: Duration::ZERO,
            faults: Arc::default(),
            holds: Arc::default(),
            audits: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// One that does not say what it stands in front of.
    pub(crate) fn opaque(store: impl Store + 'static) -> Self {
        Self { opaque: true, ..Self::over(store) }
    }

    /// The same, whose requests take that long to arrive: what was read is old by then.
    pub(crate) fn a_trip_away(self, trip: Duration) -> Self {
        Self { trip, ..self }
    }

    /// How many requests for records it got.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn travel(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if !self.trip.is_zero() {
            tokio::time::sleep(self.trip).await;
        }
    }

    /// The next such request fails in that way; several are met in the order in which they were planned.
    pub(crate) fn plan(&self, request: Request, fails: Fails) {
        self.faults.lock().unwrap().push_back((request, fails));
    }

    /// How many planned faults were not met yet.
    pub(crate) fn planned(&self) -> usize {
        self.faults.lock().unwrap().len()
    }

    /// The next such request waits before it is sent.
    pub(crate) fn hold(&self, request: Request) -> Hold {
        let hold = Hold { arrived: Arc::new(Semaphore::new(0)), go: Arc::new(Semaphore::new(0)) };
        self.holds.lock().unwrap().push((request, hold.clone()));
        hold
    }

    fn held(&self, request: Request) -> Option<Hold> {
        let mut holds = self.holds.lock().unwrap();
        let at = holds.iter().position(|(held, _)| *held == request)?;
        Some(holds.remove(at).1)
    }

    /// The rows that were written into the audit.
    pub(crate) fn audits(&self) -> Vec<AuditEntry> {
        self.audits.lock().unwrap().clone()
    }

    fn fault(&self, request: Request) -> Option<Fails> {
        let mut faults = self.faults.lock().unwrap();
        let at = faults.iter().position(|(planned, _)| *planned == request)?;
        faults.remove(at).map(|(_, fails)| fails)
    }

    async fn meet<T>(
        &self,
        request: Request,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.travel().await;
        if let Some(hold) = self.held(request) {
            hold.arrived.add_permits(1);
            hold.go.acquire().await.unwrap().forget();
        }
        match self.fault(request) {
            Some(Fails::Before) => Err(gone()),
            Some(Fails::After) => run.await.and(Err(gone())),
            Some(Fails::Panics) => panic!("on purpose"),
            None => run.await,
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)))
}

/// Beats that fail as they were planned.
struct FaultyPulse {
    store: FaultyStore,
    inner: Box<dyn Pulse>,
}

impl Pulse for FaultyPulse {
    fn beat(&mut self, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, StoreError> {
        match self.store.fault(Request::Beat) {
            Some(Fails::Before) => Err(gone()),
            Some(Fails::After) => self.inner.beat(live).and(Err(gone())),
            Some(Fails::Panics) => panic!("on purpose"),
            None => self.inner.beat(live),
        }
    }

    fn owns(&mut self, owners: &[Ownership]) -> Result<Vec<bool>, StoreError> {
        self.inner.owns(owners)
    }
}

#[async_trait]
impl Claiming for FaultyStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        self.meet(Request::Claim, self.inner.claim(claim)).await
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        self.meet(Request::TakeOver, self.inner.take_over(take)).await
    }

    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError> {
        self.travel().await;
        self.inner.look(scope).await
    }

    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError> {
        self.meet(Request::Tend, self.inner.tend(seen, to)).await
    }
}

#[async_trait]
impl Owning for FaultyStore {
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        self.meet(Request::Step, self.inner.step(owner, step)).await
    }

    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        self.meet(Request::Finish, self.inner.finish(owner, finish)).await
    }

    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError> {
        Ok(Box::new(FaultyPulse { store: self.clone(), inner: self.inner.pulse()? }))
    }
}

impl Store for FaultyStore {
    fn inner(&self) -> Option<&dyn Store> {
        (!self.opaque).then_some(&*self.inner)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[async_trait]
impl Recovering for FaultyStore {
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError> {
        self.meet(Request::Due, self.inner.due(grace, after, limit)).await
    }

    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError> {
        self.inner.unsettled(after, limit).await
    }

    async fn oldest(&self) -> Result<Oldest, StoreError> {
        self.inner.oldest().await
    }

    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        self.travel().await;
        self.inner.take_to_ask(take).await
    }

    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        self.travel().await;
        self.inner.answer(owner, answered).await
    }

    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError> {
        self.meet(Request::Resolve, self.inner.resolve(seen, verdict, audit)).await
    }

    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError> {
        self.meet(Request::Learn, self.inner.learn(evidence)).await
    }

    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError> {
        self.travel().await;
        self.inner.learned(scope).await
    }
}

#[async_trait]
impl Sweeping for FaultyStore {
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError> {
        self.meet(Request::Sweep, self.inner.sweep(order)).await
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
        self.audits.lock().unwrap().push(entry.clone());
        self.inner.audit(entry).await
    }

    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError> {
        self.inner.audited(scope).await
    }
}

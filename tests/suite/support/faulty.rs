//! A store in front of another that fails when it is told to.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::Ownership;
use idem_core::store::{
    Claimed, Claiming, Fenced, Finish, Guarded, NewClaim, Owning, Pulse, Seen, Step, Store, StoreError, TakeOver,
};

/// Which request of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Claim,
    TakeOver,
    Strand,
    Step,
    Finish,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    /// It does not arrive.
    Before,
    /// It is done, and its answer does not arrive.
    After,
}

/// The store; clones share their faults.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Arc<Mutex<VecDeque<(Request, Fails)>>>,
}

impl FaultyStore {
    pub(crate) fn over(store: impl Store + 'static) -> Self {
        Self { inner: Arc::new(store), faults: Arc::default() }
    }

    /// The next such request fails in that way; several are met in the order in which they were planned.
    pub(crate) fn plan(&self, request: Request, fails: Fails) {
        self.faults.lock().unwrap().push_back((request, fails));
    }

    /// How many planned faults were not met yet.
    pub(crate) fn planned(&self) -> usize {
        self.faults.lock().unwrap().len()
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
        let gone = || StoreError::Unavailable(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        match self.fault(request) {
            Some(Fails::Before) => Err(gone()),
            Some(Fails::After) => run.await.and(Err(gone())),
            None => run.await,
        }
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

    async fn strand(&self, seen: &Seen, ask_in: Duration) -> Result<Guarded, StoreError> {
        self.meet(Request::Strand, self.inner.strand(seen, ask_in)).await
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
        self.inner.pulse()
    }
}

//! A store in memory, for tests and for work that a restart may forget.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::clock::{Clock, SystemClock};
use crate::key::Scope;
use crate::record::{Ownership, Record};
use crate::store::{
    Claimed, Claiming, Fenced, Finish, Found, Guarded, NewClaim, Owning, Pulse, Seen, Step, StoreError, TakeOver,
};
use crate::transition;

/// Records in this process's memory. Clones share them.
///
/// It gives every guarantee of the durable stores but one: when the process ends, all is forgotten, and the next
/// request with an old key is a first request.
#[derive(Clone)]
pub struct MemoryStore {
    records: Arc<Mutex<HashMap<Scope, Record>>>,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store that dates records by `clock`.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { records: Arc::default(), clock }
    }

    /// The record of `scope` as it stands, for tests and for looking.
    #[must_use]
    pub fn record(&self, scope: &Scope) -> Option<Record> {
        self.lock().get(scope).cloned()
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Every change of a record is one assignment by a pure function, so a panic elsewhere leaves none half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<Scope, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Databases keep milliseconds or microseconds; a memory store that kept more would hide what rounding breaks.
    fn now(&self) -> SystemTime {
        let since = self.clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn found(record: &Record, now: SystemTime) -> Box<Found> {
        Box::new(Found { record: record.clone(), now })
    }

    fn guarded(&self, scope: &Scope, write: impl FnOnce(&mut Record, SystemTime) -> bool) -> Guarded {
        let mut records = self.lock();
        let now = self.now();
        let Some(record) = records.get_mut(scope) else { return Guarded::Changed(None) };
        if write(record, now) { Guarded::Written { now } } else { Guarded::Changed(Some(Self::found(record, now))) }
    }

    fn fenced(&self, scope: &Scope, write: impl FnOnce(&mut Record, SystemTime) -> bool) -> Fenced {
        match self.guarded(scope, write) {
            Guarded::Written { now } => Fenced::Written { now },
            Guarded::Changed(found) => Fenced::Refused(found),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Claiming for MemoryStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        let mut records = self.lock();
        let now = self.now();
        Ok(match records.entry(claim.scope.clone()) {
            Entry::Vacant(empty) => {
                empty.insert(transition::insert(claim, now));
                Claimed::Inserted { now }
            }
            Entry::Occupied(there) => Claimed::Found(Self::found(there.get(), now)),
        })
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.guarded(&take.seen.scope, |record, now| transition::take_over(record, take, now)))
    }

    async fn strand(&self, seen: &Seen, ask_in: Duration) -> Result<Guarded, StoreError> {
        Ok(self.guarded(&seen.scope, |record, now| transition::strand(record, seen, ask_in, now)))
    }
}

#[async_trait]
impl Owning for MemoryStore {
    async fn step(&self, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        Ok(self.fenced(&owner.scope, |record, now| transition::step(record, owner, step, now)))
    }

    async fn finish(&self, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        Ok(self.fenced(&owner.scope, |record, now| transition::finish(record, owner, finish, now)))
    }

    fn pulse(&self) -> Result<Box<dyn Pulse>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

impl Pulse for MemoryStore {
    fn beat(&mut self, live: &[(Ownership, Duration)]) -> Result<Vec<bool>, StoreError> {
        let mut records = self.lock();
        let now = self.now();
        let mut renew = |(owner, lease): &(Ownership, Duration)| {
            records.get_mut(&owner.scope).is_some_and(|record| transition::renew(record, owner, *lease, now))
        };
        Ok(live.iter().map(&mut renew).collect())
    }
}

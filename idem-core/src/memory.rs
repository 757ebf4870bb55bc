//! A store in memory, for tests and for work that a restart may forget.

mod transaction;

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use transaction::MemoryTx;

use crate::clock::{Clock, SystemClock};
use crate::key::Scope;
use crate::record::{Ownership, Record, Status};
use crate::store::{
    Answered, AuditEntry, Claimed, Claiming, Dated, Evidence, Fenced, Finish, Found, Guarded, Keeping, Mark, NewClaim,
    Oldest, Owning, Pulse, Recovering, Seen, Step, Store, StoreError, SweepOrder, Sweeping, Swept, TakeOver, Tended,
    Verdicted,
};
use crate::transition::{self, Cleaned};

/// Records in this process's memory. Clones share them.
///
/// It gives every guarantee of the durable stores but one: when the process ends, all is forgotten, and the next
/// request with an old key is a first request.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    /// Boxed, so that the table moves pointers when it grows: every other request waits meanwhile.
    records: HashMap<Scope, Box<Record>>,
    evidence: Vec<(Scope, Dated<Evidence>)>,
    audit: Vec<Dated<AuditEntry>>,
    contracts: HashMap<(String, u32), Vec<String>>,
    settings: HashMap<String, String>,
    worker_seen_at: Option<SystemTime>,
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
        Self { state: Arc::default(), clock }
    }

    /// The record of `scope` as it stands, for tests and for looking.
    #[must_use]
    pub fn record(&self, scope: &Scope) -> Option<Record> {
        self.lock().records.get(scope).map(|record| Record::clone(record))
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().records.is_empty()
    }

    /// Every change of a record is one call of a pure function, so a panic elsewhere leaves none half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Databases keep milliseconds or microseconds; a memory store that kept more would hide what rounding breaks.
    fn now(&self) -> SystemTime {
        let since = self.clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn guarded(&self, scope: &Scope, write: impl FnOnce(&mut Record, SystemTime) -> bool) -> Guarded {
        let mut state = self.lock();
        let now = self.now();
        let Some(record) = state.records.get_mut(scope) else { return Guarded::Changed(None) };
        if write(record, now) { Guarded::Written { now } } else { Guarded::Changed(Some(found(record, now))) }
    }

    fn fenced(&self, scope: &Scope, write: impl FnOnce(&mut Record, SystemTime) -> bool) -> Fenced {
        match self.guarded(scope, write) {
            Guarded::Written { now } => Fenced::Written { now },
            Guarded::Changed(found) => Fenced::Refused(found),
        }
    }
}

fn found(record: &Record, now: SystemTime) -> Box<Found> {
    Box::new(Found { record: record.clone(), now })
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

impl Store for MemoryStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[async_trait]
impl Claiming for MemoryStore {
    async fn claim(&self, claim: &NewClaim) -> Result<Claimed, StoreError> {
        let mut state = self.lock();
        let now = self.now();
        Ok(match state.records.entry(claim.scope.clone()) {
            Entry::Vacant(empty) => {
                empty.insert(Box::new(transition::insert(claim, now)));
                Claimed::Inserted { now }
            }
            Entry::Occupied(there) => Claimed::Found(found(there.get(), now)),
        })
    }

    async fn take_over(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.guarded(&take.seen.scope, |record, now| transition::take_over(record, take, now)))
    }

    async fn look(&self, scope: &Scope) -> Result<Option<Box<Found>>, StoreError> {
        let state = self.lock();
        let now = self.now();
        Ok(state.records.get(scope).map(|record| found(record, now)))
    }

    async fn tend(&self, seen: &Seen, to: &Tended) -> Result<Guarded, StoreError> {
        Ok(self.guarded(&seen.scope, |record, now| transition::tend(record, seen, to, now)))
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
        let mut state = self.lock();
        let now = self.now();
        let mut renew = |(owner, lease): &(Ownership, Duration)| {
            let record = state.records.get_mut(&owner.scope);
            record.is_some_and(|record| transition::renew(record, owner, *lease, now))
        };
        Ok(live.iter().map(&mut renew).collect())
    }

    fn owns(&mut self, owners: &[Ownership]) -> Result<Vec<bool>, StoreError> {
        let state = self.lock();
        let owns = |owner: &Ownership| {
            let record = state.records.get(&owner.scope);
            record.is_some_and(|record| {
                record.ownership() == *owner && matches!(record.status, Status::InProgress { .. })
            })
        };
        Ok(owners.iter().map(owns).collect())
    }
}

#[async_trait]
impl Recovering for MemoryStore {
    async fn due(&self, grace: Duration, after: Option<&Record>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let state = self.lock();
        let now = self.now();
        let place = |record: &Record| (transition::due_at(record), record.scope.clone());
        let after = after.map(place);
        let due = state.records.values().filter(|record| transition::is_due(record, grace, now));
        let mut due: Vec<_> = due.map(|record| (place(record), record)).collect();
        due.retain(|(place, _)| after.as_ref().is_none_or(|after| after < place));
        due.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(due.into_iter().take(limit as usize).map(|(_, record)| *found(record, now)).collect())
    }

    async fn unsettled(&self, after: Option<&Mark>, limit: u32) -> Result<Vec<Found>, StoreError> {
        let state = self.lock();
        let now = self.now();
        let place = |record: &Record| transition::due_at(record).map(|at| (at, record.scope.clone()));
        let after = after.map(|mark| (mark.at, mark.scope.clone()));
        let unsettled = state.records.values().filter_map(|record| Some((place(record)?, record)));
        let mut unsettled: Vec<_> =
            unsettled.filter(|(place, _)| after.as_ref().is_none_or(|after| after < place)).collect();
        unsettled.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(unsettled.into_iter().take(limit as usize).map(|(_, record)| *found(record, now)).collect())
    }

    async fn oldest(&self) -> Result<Oldest, StoreError> {
        let state = self.lock();
        let now = self.now();
        let mut oldest = Oldest::default();
        for record in state.records.values() {
            let waits = match &record.status {
                Status::InProgress { locked_until } if *locked_until <= now => &mut oldest.abandoned,
                _ if record.is_parked() => &mut oldest.parked,
                Status::Unknown { .. } => &mut oldest.unknown,
                _ => continue,
            };
            *waits = (*waits).max(now.duration_since(record.created_at).unwrap_or_default());
        }
        Ok(oldest)
    }

    async fn take_to_ask(&self, take: &TakeOver) -> Result<Guarded, StoreError> {
        Ok(self.guarded(&take.seen.scope, |record, now| transition::take_to_ask(record, take, now)))
    }

    async fn answer(&self, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        Ok(self.fenced(&owner.scope, |record, now| transition::answer(record, owner, answered, now)))
    }

    async fn resolve(&self, seen: &Seen, verdict: &Verdicted, audit: &AuditEntry) -> Result<Guarded, StoreError> {
        let mut state = self.lock();
        let now = self.now();
        let State { records, audit: rows, .. } = &mut *state;
        let Some(record) = records.get_mut(&seen.scope) else { return Ok(Guarded::Changed(None)) };
        if !transition::resolve(record, seen, verdict, now) {
            return Ok(Guarded::Changed(Some(found(record, now))));
        }
        rows.push(Dated { at: now, what: audit.clone() });
        Ok(Guarded::Written { now })
    }

    async fn learn(&self, evidence: &Evidence) -> Result<Option<Scope>, StoreError> {
        let mut state = self.lock();
        let now = self.now();
        let known = |record: &&mut Box<Record>| record.calls.iter().any(|call| call.key == evidence.key);
        let Some(record) = state.records.values_mut().find(known) else { return Ok(None) };
        transition::learn(record, now);
        let scope = record.scope.clone();
        state.evidence.push((scope.clone(), Dated { at: now, what: evidence.clone() }));
        Ok(Some(scope))
    }

    async fn learned(&self, scope: &Scope) -> Result<Vec<Dated<Evidence>>, StoreError> {
        let state = self.lock();
        Ok(state.evidence.iter().filter(|(of, _)| of == scope).map(|(_, evidence)| evidence.clone()).collect())
    }
}

#[async_trait]
impl Sweeping for MemoryStore {
    async fn sweep(&self, order: SweepOrder) -> Result<Swept, StoreError> {
        let mut state = self.lock();
        let now = self.now();
        let mut swept = Swept::default();
        let limit = u64::from(order.limit);
        state.records.retain(|_, record| {
            if swept.bodies.max(swept.expired).max(swept.purged) >= limit {
                return true;
            }
            match transition::sweep(record, order.purge_tombstones, now) {
                Cleaned::Kept => {}
                Cleaned::Body => swept.bodies += 1,
                Cleaned::Expired => swept.expired += 1,
                Cleaned::Purged => {
                    swept.purged += 1;
                    return false;
                }
            }
            true
        });
        let State { records, evidence, .. } = &mut *state;
        evidence.retain(|(scope, _)| records.contains_key(scope));
        Ok(swept)
    }
}

#[async_trait]
impl Keeping for MemoryStore {
    async fn contracts(&self, operation: &str, version: u32) -> Result<Vec<String>, StoreError> {
        Ok(self.lock().contracts.get(&(operation.to_owned(), version)).cloned().unwrap_or_default())
    }

    async fn add_contract(&self, operation: &str, version: u32, number: u32, text: &str) -> Result<bool, StoreError> {
        let mut state = self.lock();
        let texts = state.contracts.entry((operation.to_owned(), version)).or_default();
        let next = texts.len() == number as usize;
        if next {
            texts.push(text.to_owned());
        }
        Ok(next)
    }

    async fn settle_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        Ok(self.lock().settings.entry(name.to_owned()).or_insert_with(|| value.to_owned()).clone())
    }

    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        let state = self.lock();
        let mut settings: Vec<_> = state.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        settings.sort();
        Ok(settings)
    }

    async fn sign_of_life(&self) -> Result<(), StoreError> {
        let now = self.now();
        self.lock().worker_seen_at = Some(now);
        Ok(())
    }

    async fn silence(&self) -> Result<Option<Duration>, StoreError> {
        let now = self.now();
        Ok(self.lock().worker_seen_at.map(|seen| now.duration_since(seen).unwrap_or_default()))
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let at = self.now();
        self.lock().audit.push(Dated { at, what: entry.clone() });
        Ok(())
    }

    async fn audited(&self, scope: &Scope) -> Result<Vec<Dated<AuditEntry>>, StoreError> {
        Ok(self.lock().audit.iter().filter(|row| row.what.scope.as_ref() == Some(scope)).cloned().collect())
    }
}

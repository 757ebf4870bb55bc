//! Transactions of the store in memory.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::memory::{MemoryStore, found};
use crate::record::{Ownership, Record};
use crate::store::{Answered, Fenced, Finish, Joins, OtherStore, Step, StoreError, TxStore};
use crate::transition;

/// A transaction of a [`MemoryStore`], for tests of what runs in one. What is to happen with the commit, and only with
/// it, is given to [`Self::on_commit`].
pub struct MemoryTx {
    store: MemoryStore,
    writes: Vec<Write>,
    effects: Vec<Box<dyn FnOnce() + Send>>,
}

/// One write of a record, at the moment of the store's clock that its writer was told.
struct Write {
    owner: Ownership,
    what: What,
    now: SystemTime,
}

enum What {
    Step(Step),
    Finish(Finish),
    Answer(Answered),
}

impl Write {
    fn apply(&self, record: &mut Record) -> bool {
        match &self.what {
            What::Step(step) => transition::step(record, &self.owner, step, self.now),
            What::Finish(finish) => transition::finish(record, &self.owner, finish, self.now),
            What::Answer(answered) => transition::answer(record, &self.owner, answered, self.now),
        }
    }
}

impl MemoryTx {
    /// Runs `effect` when the transaction is committed; never, where it is rolled back.
    pub fn on_commit(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.push(Box::new(effect));
    }

    /// Tries the write on a copy of the record, behind what this transaction wrote before.
    fn write(&mut self, store: &MemoryStore, owner: &Ownership, what: What) -> Result<Fenced, StoreError> {
        if !Arc::ptr_eq(&self.store.state, &store.state) {
            let store = "this store in memory".to_owned();
            return Err(OtherStore { transaction: "another store in memory".to_owned(), store }.into());
        }
        let state = self.store.lock();
        let now = self.store.now();
        let Some(mut record) = state.records.get(&owner.scope).cloned() else { return Ok(Fenced::Refused(None)) };
        let write = Write { owner: owner.clone(), what, now };
        let mut before = self.writes.iter().filter(|before| before.owner.scope == owner.scope);
        let held = before.all(|before| before.apply(&mut record));
        if !held || !write.apply(&mut record) {
            return Ok(Fenced::Refused(Some(found(&record, now))));
        }
        drop(state);
        self.writes.push(write);
        Ok(Fenced::Written { now })
    }
}

#[async_trait]
impl Joins<MemoryStore> for MemoryTx {
    async fn step(&mut self, store: &MemoryStore, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        self.write(store, owner, What::Step(step.clone()))
    }

    async fn finish(&mut self, store: &MemoryStore, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        self.write(store, owner, What::Finish(finish.clone()))
    }

    async fn answer(
        &mut self,
        store: &MemoryStore,
        owner: &Ownership,
        answered: &Answered,
    ) -> Result<Fenced, StoreError> {
        self.write(store, owner, What::Answer(answered.clone()))
    }

    async fn commit(self) -> Result<(), StoreError> {
        let Self { store, writes, effects } = self;
        let mut state = store.lock();
        // All on copies first: what was taken over meanwhile takes back everything.
        let mut records: Vec<Record> = Vec::new();
        for write in &writes {
            let at = match records.iter().position(|record| record.scope == write.owner.scope) {
                Some(at) => at,
                None => {
                    records.extend(state.records.get(&write.owner.scope).map(|record| Record::clone(record)));
                    records.len().saturating_sub(1)
                }
            };
            if !records.get_mut(at).is_some_and(|record| write.apply(record)) {
                return Err(StoreError::Unavailable(Box::new(io::Error::other("a record was written meanwhile"))));
            }
        }
        for record in records {
            state.records.insert(record.scope.clone(), Box::new(record));
        }
        drop(state);
        effects.into_iter().for_each(|effect| effect());
        Ok(())
    }
}

#[async_trait]
impl TxStore for MemoryStore {
    type Tx = MemoryTx;

    async fn begin(&self) -> Result<MemoryTx, StoreError> {
        Ok(MemoryTx { store: self.clone(), writes: Vec::new(), effects: Vec::new() })
    }

    async fn answer_in(&self, mut tx: MemoryTx, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        let written = tx.answer(self, owner, answered).await?;
        if let Fenced::Written { .. } = written {
            tx.commit().await?;
        }
        Ok(written)
    }
}

impl fmt::Debug for MemoryTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTx").field("writes", &self.writes.len()).finish_non_exhaustive()
    }
}

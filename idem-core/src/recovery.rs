//! What a worker does for records that no client comes for: release them, ask their providers, or call a person.

use std::time::Duration;

use crate::decide::{Tend, tend};
use crate::engine::{Came, Engine};
use crate::events::{Event, RecoveryStep};
use crate::record::{Record, StatusName};
use crate::store::{Evidence, Found, Guarded, Seen, StoreError, Tended};

/// What one round of recovery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that were looked at.
    pub looked: u64,
    /// Abandoned ones that the next client may run.
    pub released: u64,
    /// Ones that nobody knows the end of, to be asked about from now on.
    pub stranded: u64,
    /// Ones that a person was called for.
    pub parked: u64,
    /// Ones whose providers were asked.
    pub asked: u64,
    /// Ones that the asking settled, or made runnable again.
    pub settled: u64,
}

impl Engine {
    /// One round over the records that are due, `limit` at a time, until none is left that was due when it began.
    ///
    /// Any number of nodes may do it at once: each record is taken by one of them.
    ///
    /// # Errors
    /// [`StoreError`] where the due records cannot be read. What goes wrong with one record is logged, and the others
    /// go on.
    pub async fn recover_once(&self, limit: u32) -> Result<Recovered, StoreError> {
        let mut sum = Recovered::default();
        let mut last: Option<Record> = None;
        let mut oldest = [(StatusName::InProgress, Duration::ZERO), (StatusName::Unknown, Duration::ZERO)];
        loop {
            let due = self.store().due(self.shortest_grace(), last.as_ref(), limit).await?;
            let Some(end) = due.last().map(|found| found.record.clone()) else { break };
            for found in due {
                let age = found.now.duration_since(found.record.created_at).unwrap_or_default();
                for (status, oldest) in &mut oldest {
                    if found.record.status.name() == *status {
                        *oldest = (*oldest).max(age);
                    }
                }
                sum.looked += 1;
                if let Err(error) = self.recover(found, &mut sum).await {
                    self.observe(&Event::StoreFailed { code: error.code() });
                    tracing::warn!(
                        code = error.code(),
                        error = &error as &dyn std::error::Error,
                        "a record could not be recovered; the next round tries again"
                    );
                }
            }
            last = Some(end);
        }
        for (status, age) in oldest {
            self.observe(&Event::Oldest { status, age });
        }
        Ok(sum)
    }

    /// Keeps what was learned about a call from outside of its owner (a provider's webhook, a late outcome), and makes its
    /// record due at once. False where no call has that key.
    ///
    /// # Errors
    /// [`StoreError`]; sent again it may be kept twice, which harms nothing.
    pub async fn evidence(&self, evidence: &Evidence) -> Result<bool, StoreError> {
        Ok(self.store().learn(evidence).await?.is_some())
    }

    async fn recover(&self, found: Found, sum: &mut Recovered) -> Result<(), StoreError> {
        let Found { record, now } = found;
        let operation = record.scope.operation();
        let rules = self.rules_of(operation).clone();
        let learned =
            if record.has_open_call() { self.store().learned(&record.scope).await? } else { Vec::<Evidence>::new() };
        let seen = Seen::of(&record);
        let (to, step) = match tend(&record, &|call| self.is_askable(&record, call, &learned), now, &rules) {
            Tend::Leave => return Ok(()),
            Tend::Release => {
                let to = Tended::Released { retry_in: rules.backoff, keep: rules.keep() };
                (to, Some(RecoveryStep::Released))
            }
            Tend::Strand => (Tended::Stranded { ask_in: Duration::ZERO }, Some(RecoveryStep::Stranded)),
            Tend::Park => (Tended::Parked { ask_in: rules.ask_parked }, None),
            Tend::Ask => {
                let came = self.ask(record, &learned, &rules, rules.ask_lease / 2).await?;
                sum.asked += u64::from(came != Came::NotTaken);
                sum.settled += u64::from(came == Came::Settled);
                sum.parked += u64::from(came == Came::Parked);
                return Ok(());
            }
        };
        if let Guarded::Changed(_) = self.store().tend(&seen, &to).await? {
            return Ok(());
        }
        match step {
            Some(step) => {
                self.observe(&Event::Recovered { operation, step });
                sum.released += u64::from(step == RecoveryStep::Released);
                sum.stranded += u64::from(step == RecoveryStep::Stranded);
            }
            None => {
                self.alert(&record, now);
                sum.parked += 1;
            }
        }
        Ok(())
    }
}

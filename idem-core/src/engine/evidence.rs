//! What is learned of calls from outside of their owners: kept, and told of where it contradicts what a record has come
//! to.

use crate::calls::{CallRecord, CallState};
use crate::decide::{contradicts, weightiest};
use crate::engine::claim::Progress;
use crate::engine::{Claim, Inner};
use crate::events::{CallFate, Event};
use crate::key::Scope;
use crate::record::{Record, Status};
use crate::store::{Evidence, StoreError};

impl Inner {
    /// Keeps it, and tells of it where it comes too late. False where no call has that key.
    pub(crate) async fn learn(&self, evidence: &Evidence) -> Result<bool, StoreError> {
        let Some(scope) = self.store.learn(evidence).await? else { return Ok(false) };
        self.compare(&scope, |call| call.key == evidence.key).await?;
        Ok(true)
    }

    /// Tells of all evidence that a record was settled against: it came while whoever settled it had read it already.
    pub(crate) async fn look_for_contradictions(&self, scope: &Scope) {
        if let Err(error) = self.compare(scope, |_| true).await {
            // What it is for has been written, and the evidence is there for whoever looks.
            drop(self.failed(error));
        }
    }

    /// Compares what was learned of calls with what their record has come to. Of one call the word counts that weighs
    /// most: a provider's webhooks come late and in any order, and an earlier one may have been overtaken.
    async fn compare(&self, scope: &Scope, about: impl Fn(&CallRecord) -> bool) -> Result<(), StoreError> {
        let learned = self.store.learned(scope).await?;
        let found = if learned.is_empty() { None } else { self.store.look(scope).await? };
        let Some(record) = found.map(|found| found.record) else { return Ok(()) };
        for call in record.calls.iter().filter(|call| about(call)) {
            let of_it = learned.iter().map(|learned| &learned.what).filter(|evidence| evidence.key == call.key);
            let told = weightiest(of_it.map(|evidence| &evidence.state));
            if let Some(told) = told.filter(|told| contradicts(&record, call, told)) {
                self.tell_contradiction(&record, call, told);
            }
        }
        Ok(())
    }

    fn tell_contradiction(&self, record: &Record, call: &CallRecord, told: &CallState) {
        let (operation, name) = (record.scope.operation(), call.name.as_str());
        let (stands, told) = (stands(record, call), CallFate::from(told));
        self.observer.observe(&Event::Contradicted { operation, call: name, stands, told });
        tracing::error!(
            operation,
            call = name,
            key = call.key.as_str(),
            stands = stands.as_str(),
            told = told.as_str(),
            "evidence contradicts what a command has come to: a person has to compare what the provider has"
        );
    }
}

/// What a record says of a call: where nobody closed it, what its answer says.
fn stands(record: &Record, call: &CallRecord) -> CallFate {
    match (&call.state, &record.status) {
        (CallState::Open, Status::Completed(_)) => CallFate::Applied,
        (CallState::Open, Status::FailedReplayable(_)) => CallFate::Rejected,
        (state, _) => CallFate::from(state),
    }
}

impl Claim {
    /// What this attempt has learned of its calls and can write no more, since its record is another's by now: whoever
    /// settles the record reads it as evidence.
    pub(super) async fn keep_late(&self, progress: &mut Progress) {
        let made = progress.take_made();
        for (key, state) in made {
            let evidence = Evidence { key, source: LATE.to_owned(), state };
            let mut wait = super::claim::FIRST_RETRY;
            let kept = loop {
                match self.engine.learn(&evidence).await {
                    Err(error) if error.is_transient() && wait <= super::claim::LAST_RETRY => {
                        self.engine.clock.sleep(wait).await;
                        wait *= 4;
                    }
                    kept => break kept,
                }
            };
            if let Err(error) = kept {
                let (operation, key) = (self.scope().operation(), evidence.key.as_str());
                let error = &error as &dyn std::error::Error;
                tracing::error!(operation, key, error, "the outcome of a call is lost: its record was taken over");
            }
        }
    }
}

/// Where a late outcome comes from.
const LATE: &str = "an attempt that had lost its record";

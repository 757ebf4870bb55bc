//! What recovery, retention, the worker and people need of an engine.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::{Engine, Inner, Reached};
use crate::events::Event;
use crate::reconciler::Settles;
use crate::rules::Rules;
use crate::store::Store;
#[cfg(feature = "tokio")]
use crate::store::StoreError;

impl Engine {
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    pub(crate) fn observe(&self, event: &Event<'_>) {
        self.inner.observer.observe(event);
    }

    /// The rules that an operation is run by.
    #[must_use]
    pub fn rules_of(&self, operation: &str) -> &Rules {
        self.inner.rules(operation)
    }

    /// The grace of the operation that has the shortest: a worker reads what is due by that, and judges each record by
    /// its own.
    pub(crate) fn shortest_grace(&self) -> Duration {
        let graces = self.inner.operations.values().map(|rules| rules.grace);
        graces.min().map_or(self.inner.rules.grace, |grace| grace.min(self.inner.rules.grace))
    }

    /// The longest time for which a worker keeps a record to ask about it.
    #[cfg(feature = "tokio")]
    pub(crate) fn longest_ask_lease(&self) -> Duration {
        let leases = self.inner.operations.values().map(|rules| rules.ask_lease);
        leases.fold(self.inner.rules.ask_lease, Duration::max)
    }

    pub(crate) fn reconciler_of(&self, operation: &str, call: &str) -> Option<&Arc<dyn Settles>> {
        self.inner.reconcilers.get(&(operation.to_owned(), call.to_owned()))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// How far recovery has come; `None`: it begins anew.
    pub(crate) fn recovering(&self) -> MutexGuard<'_, Option<Reached>> {
        self.inner.recovering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kept_headers(&self) -> &[String] {
        &self.inner.kept_headers
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn store_failed(&self, error: &StoreError) {
        self.observe(&Event::StoreFailed { code: error.code() });
        tracing::warn!(
            code = error.code(),
            error = error as &dyn std::error::Error,
            "the store failed a worker; its next round tries again"
        );
    }
}

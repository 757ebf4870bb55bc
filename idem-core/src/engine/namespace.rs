//! The namespace of a store: settled by the first engine that uses it, and the same for every other.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Inner;
use crate::store::StoreError;

/// The store's records were made under another namespace. Nothing must be taken in: derived ids and downstream keys
/// would be others than those of the attempts before, and a provider would take a retry for a new payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store's records belong to the namespace `{settled}`, and this engine has `{own}`: its derived ids and downstream \
     keys would be others. Build it with `.namespace(\"{settled}\")`, or over a store of its own"
)]
#[non_exhaustive]
pub struct OtherNamespace {
    /// The store's.
    pub settled: String,
    /// The engine's.
    pub own: String,
}

impl OtherNamespace {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "NAMESPACE_OTHER"
    }
}

/// Whether this engine knows already that the store's namespace is its own.
#[derive(Default)]
pub(super) struct Settled(AtomicBool);

impl Inner {
    /// Settles the namespace where the store has none, and compares it where it has one: once for an engine, since it
    /// never changes.
    pub(super) async fn settle_namespace(&self) -> Result<Result<(), OtherNamespace>, StoreError> {
        if self.settled.0.load(Ordering::Relaxed) {
            return Ok(Ok(()));
        }
        let settled = self.store.settle_setting(SETTING, &self.namespace).await?;
        if settled != self.namespace {
            return Ok(Err(OtherNamespace { settled, own: self.namespace.clone() }));
        }
        self.say_what_is_rebuilt().await?;
        self.settled.0.store(true, Ordering::Relaxed);
        Ok(Ok(()))
    }

    /// The same where nobody has registered anything: nothing is claimed in a store that belongs to another namespace.
    pub(super) async fn own_namespace(&self) -> Result<(), StoreError> {
        self.settle_namespace().await?.map_err(|other| StoreError::Unusable(Box::new(other)))
    }
}

/// Its name among the store's settings.
const SETTING: &str = "namespace";

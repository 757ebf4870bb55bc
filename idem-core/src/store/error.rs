//! Why a store did not do what it was asked.

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database is away, too slow, or gave up a transaction: the same request may succeed later. Whether a
    /// write happened is unknown.
    #[error("the idempotency store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database answered with something that idem cannot work with, a missing table for instance. Trying
    /// again does not help; the source says what does.
    #[error("the idempotency store cannot be used")]
    Unusable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored record does not read as one: not written by this release, or damaged.
    #[error("the idempotency store holds a record that cannot be read ({0})")]
    Unreadable(&'static str),
}

impl StoreError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "STORE_UNAVAILABLE",
            Self::Unusable(_) => "STORE_UNUSABLE",
            Self::Unreadable(_) => "STORE_RECORD_UNREADABLE",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

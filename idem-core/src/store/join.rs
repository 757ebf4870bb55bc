//! Records written inside of the application's own transaction.

use async_trait::async_trait;

use crate::record::Ownership;
use crate::store::{Answered, Fenced, Finish, Step, Store, StoreError};

/// A transaction of the database that the store `S` keeps its records in: business rows and record are written
/// together, or not at all.
///
/// A driver's own type joins a store (`impl Joins<MyStore> for driver::Transaction`), so that whoever only runs work
/// names neither. Dropping a transaction that was not committed takes back what was written in it.
#[async_trait]
pub trait Joins<S: ?Sized>: Send + Sized {
    /// [`Owning::step`](super::Owning::step) in this transaction. A refused one has written nothing, and leaves the
    /// transaction usable.
    ///
    /// # Errors
    /// [`StoreError`]; the transaction may be unusable then, and must not be committed. [`OtherStore`] is the source
    /// where it belongs to another database than `store`.
    async fn step(&mut self, store: &S, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError>;

    /// [`Owning::finish`](super::Owning::finish) in this transaction.
    ///
    /// # Errors
    /// As [`Self::step`].
    async fn finish(&mut self, store: &S, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError>;

    /// [`Recovering::answer`](super::Recovering::answer) in this transaction.
    ///
    /// # Errors
    /// As [`Self::step`].
    async fn answer(&mut self, store: &S, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError>;

    /// Commits it.
    ///
    /// # Errors
    /// [`StoreError`]; whether it was committed is then unknown, until the record is read.
    async fn commit(self) -> Result<(), StoreError>;
}

/// A store whose database also holds the application's own rows.
#[async_trait]
pub trait TxStore: Store + Sized {
    /// Its transactions.
    type Tx: Joins<Self>;

    /// Begins one. Whoever drops this half-way leaves no transaction behind.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn begin(&self) -> Result<Self::Tx, StoreError>;

    /// [`Recovering::answer`](super::Recovering::answer) inside of `tx`, which is committed with it; a refused write
    /// rolls all of it back.
    ///
    /// # Errors
    /// [`StoreError`]; whether it was committed is then unknown.
    async fn answer_in(&self, tx: Self::Tx, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError>;
}

/// A transaction cannot hold the record: it belongs to another database, or to another kind of store. The source of a
/// [`StoreError::Unusable`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the transaction is one of {transaction}, the record is kept in {store}: both must be one database")]
pub struct OtherStore {
    /// What the transaction belongs to.
    pub transaction: String,
    /// Where the record is.
    pub store: String,
}

impl OtherStore {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "TRANSACTION_OF_ANOTHER_STORE"
    }
}

impl From<OtherStore> for StoreError {
    fn from(other: OtherStore) -> Self {
        Self::Unusable(Box::new(other))
    }
}

/// The store of type `S` that `store` is, or stands in front of.
pub(crate) fn unwrapped<S: Store + 'static>(store: &dyn Store) -> Result<&S, StoreError> {
    let mut at = Some(store);
    while let Some(store) = at {
        if let Some(found) = store.as_any().downcast_ref() {
            return Ok(found);
        }
        at = store.inner();
    }
    let transaction = std::any::type_name::<S>().to_owned();
    Err(OtherStore { transaction, store: "another kind of store".to_owned() }.into())
}

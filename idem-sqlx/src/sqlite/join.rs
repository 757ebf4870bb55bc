//! Records written inside of the application's own transaction.

use std::path::Path;

use async_trait::async_trait;
use idem_core::store::{Answered, Evidence, Fenced, Finish, Joins, OtherStore, Step, TxStore};
use idem_core::{Ownership, StoreError};
use sqlx::{Row, Sqlite, SqliteConnection, Transaction};

use crate::error::{Error, Trouble};
use crate::sqlite::{SqliteStore, recover, write};

#[async_trait]
impl Joins<SqliteStore> for Transaction<'_, Sqlite> {
    async fn step(&mut self, store: &SqliteStore, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        joins(self, store).await?;
        Ok(write::step(self, owner, step).await?)
    }

    async fn finish(&mut self, store: &SqliteStore, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        joins(self, store).await?;
        Ok(write::finish(self, owner, finish).await?)
    }

    async fn answer(
        &mut self,
        store: &SqliteStore,
        owner: &Ownership,
        answered: &Answered,
    ) -> Result<Fenced, StoreError> {
        joins(self, store).await?;
        Ok(recover::answer(self, owner, answered).await?)
    }

    async fn commit(self) -> Result<(), StoreError> {
        Transaction::commit(self).await.map_err(|error| Error::of_sqlite(error).into())
    }
}

impl SqliteStore {
    /// [`Engine::evidence`](idem_core::Engine::evidence) inside of the application's transaction: what a webhook says, with
    /// the mark that it was seen. False where no call has that key.
    ///
    /// # Errors
    /// [`StoreError`]; the transaction must not be committed.
    pub async fn evidence_in(&self, tx: &mut Transaction<'_, Sqlite>, evidence: &Evidence) -> Result<bool, StoreError> {
        joins(tx, self).await?;
        Ok(recover::learn(tx, evidence).await?.is_some())
    }
}

#[async_trait]
impl TxStore for SqliteStore {
    type Tx = Transaction<'static, Sqlite>;

    async fn begin(&self) -> Result<Self::Tx, StoreError> {
        let pool = self.work.clone();
        // A task, which nobody cancels, whatever becomes of a `begin` that is dropped in flight: what nobody waits for
        // any more is rolled back when the task drops it.
        let begun = tokio::spawn(async move { pool.begin_with("BEGIN IMMEDIATE").await }).await;
        match begun {
            Ok(begun) => begun.map_err(|error| Error::of_sqlite(error).into()),
            Err(error) => Err(StoreError::Unavailable(Box::new(error))),
        }
    }

    async fn answer_in(&self, mut tx: Self::Tx, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        let written = tx.answer(self, owner, answered).await?;
        if let Fenced::Written { .. } = written {
            Joins::commit(tx).await?;
        }
        Ok(written)
    }
}

/// Refuses a connection to another file, and one that forgets.
async fn joins(tx: &mut SqliteConnection, store: &SqliteStore) -> Result<(), StoreError> {
    let row = sqlx::query(MAIN).fetch_one(tx).await.map_err(Trouble::from)?;
    let file: String = row.try_get(0).map_err(Trouble::from)?;
    let synchronous: i64 = row.try_get(1).map_err(Trouble::from)?;
    let same = Path::new(&file) == store.file
        || matches!((Path::new(&file).canonicalize(), store.file.canonicalize()), (Ok(one), Ok(other)) if one == other);
    if !same {
        let transaction = format!("the file `{file}`");
        return Err(OtherStore { transaction, store: format!("the file `{}`", store.file.display()) }.into());
    }
    if synchronous < FULL {
        return Err(Error::NotDurable(synchronous).into());
    }
    Ok(())
}

const MAIN: &str = "
SELECT main.file, durability.synchronous FROM pragma_database_list main, pragma_synchronous durability
WHERE main.name = 'main'";

const FULL: i64 = 2;

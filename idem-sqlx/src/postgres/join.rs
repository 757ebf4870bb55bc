//! Records written inside of the application's own transaction.

use std::time::Duration;

use async_trait::async_trait;
use idem_core::store::{Answered, Evidence, Fenced, Finish, Joins, OtherStore, Step, TxStore};
use idem_core::{Ownership, StoreError};
use sqlx::types::Uuid;
use sqlx::{PgConnection, Postgres, Row, Transaction};
use tokio::time::timeout;

use crate::error::{Error, Trouble};
use crate::postgres::session::{NETWORK, Session, silent};
use crate::postgres::{PgStore, sql, tend, write};

#[async_trait]
impl Joins<PgStore> for Transaction<'_, Postgres> {
    async fn step(&mut self, store: &PgStore, owner: &Ownership, step: &Step) -> Result<Fenced, StoreError> {
        let joined = Joined::to(self, store).await?;
        let mut session = Session::within(self, store.desk.options());
        joined.judge(write::step(&mut session, owner, step).await)
    }

    async fn finish(&mut self, store: &PgStore, owner: &Ownership, finish: &Finish) -> Result<Fenced, StoreError> {
        let joined = Joined::to(self, store).await?;
        let mut session = Session::within(self, store.desk.options());
        joined.judge(write::finish(&mut session, owner, finish).await)
    }

    async fn answer(&mut self, store: &PgStore, owner: &Ownership, answered: &Answered) -> Result<Fenced, StoreError> {
        let joined = Joined::to(self, store).await?;
        let mut session = Session::within(self, store.desk.options());
        joined.judge(write::answer(&mut session, owner, answered).await)
    }

    async fn commit(self) -> Result<(), StoreError> {
        match timeout(COMMIT, Transaction::commit(self)).await {
            Ok(committed) => committed.map_err(|error| Error::of_postgres(error).into()),
            // Sent, and perhaps done: the record tells.
            Err(_) => Err(silent().into()),
        }
    }
}

impl PgStore {
    /// [`Engine::evidence`](idem_core::Engine::evidence) inside of the application's transaction: what a webhook says, with
    /// the mark that it was seen. False where no call has that key.
    ///
    /// # Errors
    /// [`StoreError`]; the transaction cannot be used any more.
    pub async fn evidence_in(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        evidence: &Evidence,
    ) -> Result<bool, StoreError> {
        let joined = Joined::to(tx, self).await?;
        let learned = tend::learn(&mut Session::within(tx, self.desk.options()), evidence).await?;
        match learned {
            None if !joined.sees => Err(Error::Serialization(None).into()),
            learned => Ok(learned.is_some()),
        }
    }
}

#[async_trait]
impl TxStore for PgStore {
    type Tx = Transaction<'static, Postgres>;

    async fn begin(&self) -> Result<Self::Tx, StoreError> {
        let pool = self.desk.work();
        // A task, which nobody cancels: a `begin` dropped in flight can leave its connection inside a transaction, in
        // the pool. What nobody waits for any more is rolled back when the task drops it.
        let patience = self.desk.options().acquire_timeout.saturating_add(NETWORK);
        let begin = self.desk.options().begin();
        let begun = tokio::spawn(async move { timeout(patience, pool.begin_with(begin)).await });
        match begun.await {
            Ok(Ok(begun)) => begun.map_err(|error| Error::of_postgres(error).into()),
            Ok(Err(_)) => Err(silent().into()),
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

/// How long a commit may take. It may wait for a standby, so it is not held to a statement's time-out. That nobody waits
/// longer undoes nothing: what became of it is read from the record.
const COMMIT: Duration = Duration::from_secs(10);

/// What a transaction of the right database can see.
struct Joined {
    sees: bool,
}

impl Joined {
    /// Refuses a transaction of another database, and one that forgets.
    async fn to(tx: &mut PgConnection, store: &PgStore) -> Result<Self, StoreError> {
        let other = |transaction: String| {
            let store = format!("the database `{}`", store.desk.options().database());
            StoreError::from(OtherStore { transaction, store })
        };
        let joined = Session::within(tx, store.desk.options()).rows(sqlx::query(sql::JOINED)).await;
        let rows = match joined {
            Ok(rows) => rows,
            Err(Error::NotMigrated(_)) => return Err(other("a database without idem's tables".to_owned())),
            Err(error) => return Err(error.into()),
        };
        let row = rows.first().ok_or(StoreError::Unreadable("id"))?;
        let unreadable = |_| StoreError::Unreadable("id");
        if row.try_get::<Option<Uuid>, _>("id").map_err(unreadable)? != Some(store.id) {
            let name: String = row.try_get("name").map_err(unreadable)?;
            return Err(other(format!("the database `{name}`")));
        }
        if row.try_get::<bool, _>("forgets").map_err(unreadable)? && !store.desk.options().may_forget {
            return Err(Error::CommitsAsynchronously.into());
        }
        Ok(Self { sees: row.try_get("sees").map_err(unreadable)? })
    }

    /// REPEATABLE READ and SERIALIZABLE show the record as it stood when the transaction began, perhaps before it was
    /// claimed: that they do not find it says nothing.
    fn judge(&self, written: Result<Fenced, Trouble>) -> Result<Fenced, StoreError> {
        match written? {
            Fenced::Refused(_) if !self.sees => Err(Error::Serialization(None).into()),
            written => Ok(written),
        }
    }
}

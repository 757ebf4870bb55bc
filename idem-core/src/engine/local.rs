//! Work whose whole effect is local, from its claim to its commit.

use crate::command::IdempotentCommand;
use crate::engine::{Begin, Claim, Engine, Outcome};
use crate::hash::CommandHash;
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::reply::{Failure, Reply};
use crate::store::{Store, StoreError, TxStore, unwrapped};

impl Engine {
    /// Runs work whose whole effect is in the database of `store`, where the engine keeps its records: business rows
    /// and completion are one transaction.
    ///
    /// The claim is a write of its own, so that other requests see that somebody runs. Then the work gets a transaction,
    /// and gives it back with its answer: `Ok((tx, reply))` commits both. `Err`, a panic, and an answer that is not
    /// final (a 503, say) roll the rows back; what the key meant, and a refusal, is remembered all the same, by a write
    /// of its own. A commit whose fate is unknown is settled by reading the record: it is never answered as a success
    /// that it was not.
    ///
    /// The transaction is held while the work runs, so it must not wait for anything but the database. For that, its
    /// claim has no calls.
    ///
    /// ```
    /// use idem_core::{Engine, IdempotentCommand, MemoryStore, Outcome, Reply, Tenant};
    ///
    /// #[derive(IdempotentCommand)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct OpenAccount { holder: String }
    ///
    /// # futures_executor::block_on(async {
    /// let store = MemoryStore::new();
    /// let engine = Engine::builder(store.clone()).build()?;
    /// let (tenant, key) = (Tenant::new("acme")?, "open-ada-1".parse()?);
    /// let command = OpenAccount { holder: "Ada".into() };
    ///
    /// let first = engine.run_tx(&store, &tenant, &key, &command, |mut tx, claim| async move {
    ///     let id = claim.derived_id("acc");
    ///     tx.on_commit(|| println!("an INSERT in a database of rows"));
    ///     Ok((tx, Reply::status(201).body(id)))
    /// }).await?;
    /// assert!(matches!(first, Outcome::Done { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] where the claim itself failed, or `store` is not the engine's: then nothing ran.
    pub async fn run_tx<S, C, W, F>(
        &self,
        store: &S,
        tenant: &Tenant,
        key: &IdempotencyKey,
        command: &C,
        work: W,
    ) -> Result<Outcome, StoreError>
    where
        S: TxStore + 'static,
        C: IdempotentCommand,
        W: FnOnce(S::Tx, LocalClaim) -> F,
        F: Future<Output = Result<(S::Tx, Reply), Failure>>,
    {
        self.keeps_records_in::<S>()?;
        match self.begin(tenant, key, command).await? {
            Begin::Decided(answer) => Ok(Outcome::Second(answer)),
            Begin::Run(claim) => Ok(self.conduct_tx(store, claim, work, |_| ()).await),
        }
    }

    /// Refuses a kind of store that this engine's is not, and does not stand in front of.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] over [`OtherStore`](crate::store::OtherStore).
    pub fn keeps_records_in<S: Store + 'static>(&self) -> Result<(), StoreError> {
        unwrapped::<S>(&*self.inner.store).map(|_| ())
    }

    /// [`Self::conduct`] for work in a transaction of `store`; see [`Self::run_tx`].
    pub async fn conduct_tx<S, W, F>(&self, store: &S, claim: Claim, work: W, early: impl FnOnce(Outcome)) -> Outcome
    where
        S: TxStore + 'static,
        W: FnOnce(S::Tx, LocalClaim) -> F,
        F: Future<Output = Result<(S::Tx, Reply), Failure>>,
    {
        let run = async |claim: Claim| -> Result<Reply, Failure> {
            let tx = store.begin().await?;
            let (tx, reply) = work(tx, LocalClaim(claim.clone())).await?;
            Ok(match claim.end_in::<S, _>(tx, reply).await? {
                Ok(committed) => committed.into(),
                // Rolled back; the record gets its state as after any other work.
                Err(not_final) => not_final,
            })
        };
        self.conduct(claim, run, early).await
    }
}

/// What work in a transaction holds of its claim: no calls, since the transaction would be held while they run.
#[derive(Debug, Clone)]
pub struct LocalClaim(Claim);

impl LocalClaim {
    /// See [`Claim::derived_id`].
    #[must_use]
    pub fn derived_id(&self, prefix: &str) -> String {
        self.0.derived_id(prefix)
    }

    /// See [`Claim::command_hash`].
    #[must_use]
    pub fn command_hash(&self) -> CommandHash {
        self.0.command_hash()
    }

    /// See [`Claim::attempt`].
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt()
    }

    /// See [`Claim::scope`].
    #[must_use]
    pub fn scope(&self) -> &Scope {
        self.0.scope()
    }

    /// See [`Claim::makes`].
    pub async fn makes(&self, kind: impl Into<String>, id: impl Into<String>) {
        self.0.makes(kind, id).await;
    }

    /// See [`Claim::is_lost`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// See [`Claim::lost`].
    pub async fn lost(&self) {
        self.0.lost().await;
    }
}

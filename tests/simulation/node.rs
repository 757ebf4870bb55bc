//! One process: an engine over the shared store, its requests, its worker. It may die at any moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::retention::Sweep;
use idem_core::store::TxStore;
use idem_core::{
    CallRecord, CallState, Claim, Engine, Failure, IdempotencyKey, IdempotentCommand, MemoryStore, MemoryTx, Outcome,
    Reconciler, Record, Reply, Rules, Settled, StoreError, Tenant, Transient,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::chance::{Chance, Kind, SetClock};
use crate::provider::Provider;
use crate::store::FaultyStore;

#[derive(Debug, Clone, Copy, IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub(crate) struct Pay {
    pub(crate) amount: u64,
    /// The provider will refuse it.
    #[idem(exclude)]
    pub(crate) declines: bool,
}

/// What all nodes have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) chance: Chance,
    pub(crate) store: MemoryStore,
    pub(crate) tenant: Tenant,
    pub(crate) rules: Rules,
    /// The calls of a run, in order.
    pub(crate) providers: Arc<Vec<Provider>>,
    /// The application's rows: whose command, by the id that they are kept under.
    pub(crate) business: Arc<Mutex<BTreeMap<String, u64>>>,
}

pub(crate) struct Node {
    engine: Engine,
    shared: Shared,
    tasks: JoinSet<()>,
}

impl Node {
    pub(crate) fn new(shared: &Shared) -> Self {
        let chance = &shared.chance;
        // Applications' clocks decide nothing, so each is wrong by up to an hour.
        let clock = SetClock::new(chance, chance.below(7200) as i64 - 3600);
        let faulty = FaultyStore { inner: shared.store.clone(), chance: chance.clone() };
        let mut engine = Engine::builder(faulty).clock(Arc::new(clock)).rules(shared.rules.clone());
        for (provider, name) in shared.providers.iter().zip(NAMES) {
            engine = engine.call::<Pay>(name, provider.habit.class());
            if provider.habit.askable() {
                let asks = Asks { shared: shared.clone(), provider: provider.clone() };
                engine = engine.reconciler::<Pay, _, _>(name, shared.store.clone(), asks);
            }
        }
        let engine = engine.build().unwrap();
        let mut node = Self { engine, shared: shared.clone(), tasks: JoinSet::new() };
        node.works();
        node
    }

    /// The worker's rounds.
    fn works(&mut self) {
        let (engine, chance) = (self.engine.clone(), self.shared.chance.clone());
        self.tasks.spawn(async move {
            loop {
                chance.wait(Duration::from_secs(20)).await;
                // What fails is tried again in the next round.
                let _ = engine.recover_once(10).await;
                let _ = engine.sweep_once(&Sweep::default()).await;
            }
        });
    }

    /// A request: it runs on where its client hangs up, and dies with the node.
    pub(crate) fn request(
        &mut self,
        key: IdempotencyKey,
        command: Pay,
    ) -> oneshot::Receiver<Result<Outcome, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let (engine, shared) = (self.engine.clone(), self.shared.clone());
        self.tasks.spawn(async move {
            let outcome = engine.run(&shared.tenant.clone(), &key, &command, |claim| shared.work(claim, command)).await;
            // Its client may be gone.
            let _ = answer.send(outcome);
        });
        answered
    }
}

impl Shared {
    async fn work(self, claim: Claim, command: Pay) -> Result<Reply, Failure> {
        let chance = self.chance.clone();
        let attempt = claim.attempt();
        chance.tell(Kind::Invoke, || format!("work on {}, attempt {attempt}", claim.derived_id("pay")));
        // Nothing renews its lease here, as if each heartbeat were lost.
        chance.linger(Duration::from_secs(2)).await;
        let mut lacks = false;
        for (provider, name) in self.providers.iter().zip(NAMES) {
            let call = claim.call(name, |key| provider.call(key, command.amount, command.declines)).await;
            let _: String = match call {
                // It goes on, as some work does, and fails in the end.
                Err(_) if chance.wrong(10) => {
                    lacks = true;
                    continue;
                }
                call => call?,
            };
            if chance.wrong(5) {
                return Err(Failure::from("the work broke"));
            }
            chance.linger(Duration::from_secs(1)).await;
        }
        if lacks {
            return Err(Failure::from("a call had no answer"));
        }
        let id = claim.derived_id("pay");
        let (amount, nonce) = (command.amount, chance.below(1 << 40));
        let mut tx = self.store.begin().await?;
        self.writes_row(&mut tx, id, amount);
        let reply = Reply::status(201).body(format!("{amount}:{nonce}"));
        Ok(claim.commit::<MemoryStore, _>(tx, reply).await?.into())
    }

    fn writes_row(&self, tx: &mut MemoryTx, id: String, amount: u64) {
        let business = Arc::clone(&self.business);
        tx.on_commit(move || {
            business.lock().unwrap().insert(id, amount);
        });
    }
}

/// Asks one provider.
struct Asks {
    shared: Shared,
    provider: Provider,
}

#[async_trait]
impl Reconciler<MemoryTx> for Asks {
    async fn find(&self, _: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        let chance = &self.shared.chance;
        chance.wait(Duration::from_millis(500)).await;
        if chance.wrong(20) {
            return Err(Transient::new("the provider is away"));
        }
        let found = self.provider.find(&call.key);
        chance.tell(Kind::Ok, || format!("asked about {}: {}", call.name, found.is_some()));
        Ok(match found {
            Some(CallState::Applied(receipt)) => Finding::Applied(receipt),
            Some(_) => Finding::rejected(&Reply::status(402).body("0:declined")),
            None => Finding::NotApplied,
        })
    }

    async fn settle(
        &self,
        tx: &mut MemoryTx,
        record: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn std::error::Error + Send + Sync>> {
        if let Some(refusal) = call.refusal() {
            return Ok(Settled::Reply(refusal));
        }
        let made = record.calls.iter().filter(|call| matches!(call.state, CallState::Applied(_))).count();
        if made < self.shared.providers.len() {
            return Ok(Settled::Resume);
        }
        let receipt: String = call.outcome().ok_or("it is applied")??;
        let amount: u64 = receipt.trim_start_matches("receipt of ").parse()?;
        self.shared.writes_row(tx, resource(record), amount);
        let nonce = self.shared.chance.below(1 << 40);
        Ok(Settled::Reply(Reply::status(201).body(format!("{amount}:{nonce}"))))
    }
}

/// As [`Claim::derived_id`] names it.
pub(crate) fn resource(record: &Record) -> String {
    format!("pay_{}", idem_core::resource_id("default", &record.scope))
}

pub(crate) const NAMES: [&str; 2] = ["charge", "notify"];

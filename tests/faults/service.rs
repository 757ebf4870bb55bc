//! A payment service: a command, its work, and whom to ask about it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idem_core::consumer::Delivery;
use idem_core::decide::Finding;
use idem_core::store::{Claiming as _, StoreError, TxStore as _};
use idem_core::{
    CallClass, CallRecord, Claim, Engine, Failure, IdempotencyKey, IdempotentCommand, Outcome, Reconciler, Record,
    Reply, Rules, Scope, Settled, Tenant, Transient,
};
use payments::provider::{Charge, Kind, Made, Order, Provider, RETENTION};
use rust_decimal::Decimal;
use tokio::time::timeout;

use crate::home::{Books, Home};
use crate::world::World;

#[derive(Debug, Clone, IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub(crate) struct Pay {
    pub(crate) account: String,
    pub(crate) cents: u32,
}

/// One payment. Its key is its account too, by which the provider's books are read.
pub(crate) fn pay(key: &str) -> Pay {
    Pay { account: key.to_owned(), cents: 1000 }
}

pub(crate) struct Service<H: Home> {
    home: Arc<H>,
    provider: Arc<Provider>,
    pub(crate) engine: Engine,
    kind: Kind,
}

/// Nothing that the provider does not know of arrives there later than that: it is in this very process.
const QUIESCENCE: Duration = Duration::from_millis(200);

pub(crate) const LEASE: Duration = Duration::from_millis(400);

type Failed = Box<dyn Error + Send + Sync>;

impl<H: Home> Service<H> {
    pub(crate) async fn open(world: &World) -> Result<Self, Failed> {
        let home = Arc::new(H::open(&world.records).await?);
        let provider = Provider::open(&world.provider(), world.kind, Duration::from_secs(30)).await?;
        let provider = Arc::new(provider);
        let class = match world.kind {
            Kind::Dedupes => CallClass::Dedupes { retention: RETENTION },
            Kind::QueryOnly => CallClass::QueryOnly { quiescence: QUIESCENCE },
            Kind::Neither => CallClass::Neither,
        };
        let brisk = Duration::from_millis(50);
        let rules = Rules { lease: LEASE, grace: Duration::from_millis(1), backoff: brisk, ..Rules::default() };
        let mut engine = Engine::builder(home.store().clone()).rules(rules).call::<Pay>("charge", class);
        if world.kind != Kind::Neither {
            let asks = Asks(Arc::clone(&provider));
            engine = engine.reconciler::<Pay, _, _>("charge", home.store().clone(), asks);
        }
        Ok(Self { engine: engine.build()?, home, provider, kind: world.kind })
    }

    /// One request.
    pub(crate) async fn pay(&self, key: &str, command: &Pay) -> Result<Outcome, StoreError> {
        let (tenant, key) = (tenant(), key.parse::<IdempotencyKey>().expect("a legal key"));
        let (home, provider, paying) = (Arc::clone(&self.home), Arc::clone(&self.provider), command.clone());
        self.engine.run(&tenant, &key, command, |claim| work(home, provider, claim, paying)).await
    }

    /// The same request, until its answer is a definite one.
    pub(crate) async fn settled(&self, key: &str, command: &Pay) -> Delivery {
        loop {
            match Delivery::of(&self.pay(key, command).await) {
                Delivery::Later(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                delivery => return delivery,
            }
        }
    }

    pub(crate) async fn record(&self, key: &str) -> Option<Record> {
        let scope = Scope::new(tenant(), Pay::OPERATION, key.parse().expect("a legal key"));
        self.home.store().look(&scope).await.expect("the store is there").map(|found| found.record)
    }

    /// How often money moved.
    pub(crate) async fn charges(&self, key: &str) -> usize {
        self.made(key).await.len()
    }

    /// How often the provider was asked to move it.
    pub(crate) async fn asked(&self, key: &str) -> i64 {
        self.made(key).await.iter().map(|made| made.asked).sum()
    }

    async fn made(&self, key: &str) -> Vec<Made> {
        let mut made = self.provider.charges().await.expect("the provider's books are there");
        made.retain(|made| made.account == key);
        made
    }

    pub(crate) async fn booked(&self, key: &str) -> i64 {
        self.home.booked(key).await.expect("the rows are there")
    }

    pub(crate) async fn is_sound(&self) -> bool {
        self.home.is_sound().await.expect("the database can be asked")
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").expect("a legal name")
}

async fn work<H: Home>(home: Arc<H>, provider: Arc<Provider>, claim: Claim, command: Pay) -> Result<Reply, Failure> {
    let hash = claim.command_hash();
    let order = |key| Order {
        key,
        account: command.account.clone(),
        amount: Decimal::from(command.cents),
        currency: "EUR".into(),
        command: hash,
    };
    let charge: Charge = claim.call("charge", async |key| provider.charge(order(key)).await).await?;
    let mut tx = home.store().begin().await?;
    // The application bounds its own statements.
    timeout(Duration::from_secs(2), tx.book(&command.account)).await??;
    Ok(claim.commit(tx, receipt(&charge)).await?.into())
}

fn receipt(charge: &Charge) -> Reply {
    match charge {
        Charge::Approved { receipt } => Reply::status(201).body(receipt.clone()),
        Charge::Declined { reason } => Reply::status(402).body(reason.clone()),
    }
}

struct Asks(Arc<Provider>);

#[async_trait]
impl<T: Books> Reconciler<T> for Asks {
    async fn find(&self, _: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        match self.0.find(&call.key).await.map_err(Transient::new)? {
            None => Ok(Finding::NotApplied),
            Some(made) => Finding::applied(&Charge::from(made)).map_err(Transient::new),
        }
    }

    async fn settle(&self, tx: &mut T, record: &Record, call: &CallRecord) -> Result<Settled, Failed> {
        let Some(charge) = call.outcome::<Charge>().transpose()? else { return Ok(Settled::Resume) };
        tx.book(record.scope.key().as_str()).await?;
        Ok(Settled::Reply(receipt(&charge)))
    }
}

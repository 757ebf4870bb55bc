//! A provider's outage, with clients that retry and workers that ask on four nodes: each call of the provider has an
//! owner of its own, so that nobody's patience adds up to a storm.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::{
    Answer, CallClass, CallError, CallRecord, Claim, DownstreamKey, Engine, Fate, IdempotentCommand, MemoryStore,
    MemoryTx, Outcome, Reconciler, Record, Reply, Scope, Settled, StatusName, Tenant, Transient,
};

use crate::support::clock::TokioClock;
use crate::support::faulty::FaultyStore;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const OUTAGE: Duration = Duration::from_secs(10 * 60);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

/// A provider that answers nobody during its outage, though every other payment of that time goes through.
#[derive(Clone, Default)]
struct Provider {
    out: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    questions: Arc<AtomicU64>,
    effects: Arc<Mutex<Vec<DownstreamKey>>>,
    dedupes: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the provider did not answer")]
struct NoAnswer;

impl CallError for NoAnswer {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

impl Provider {
    /// What has left goes on, whatever becomes of who sent it.
    async fn charge(&self, key: DownstreamKey) -> Result<u32, NoAnswer> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let this = self.clone();
        let charged = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let out = this.out.load(Ordering::Relaxed);
            if !out || number % 2 == 1 {
                let mut effects = this.effects.lock().unwrap();
                if !(this.dedupes && effects.contains(&key)) {
                    effects.push(key);
                }
            }
            if out { Err(NoAnswer) } else { Ok(7) }
        });
        charged.await.unwrap()
    }
}

#[async_trait]
impl Reconciler<MemoryTx> for Provider {
    async fn find(&self, _: &Record, call: &CallRecord) -> Result<Finding, Transient> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        if self.out.load(Ordering::Relaxed) {
            return Err(Transient::new(NoAnswer));
        }
        let known = self.effects.lock().unwrap().contains(&call.key);
        Ok(if known { Finding::applied(&7).expect("a number") } else { Finding::NotApplied })
    }

    async fn settle(
        &self,
        _: &mut MemoryTx,
        _: &Record,
        _: &CallRecord,
    ) -> Result<Settled, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Settled::Reply(Reply::status(201).body("7")))
    }
}

fn scope() -> Scope {
    Scope::new(Tenant::new("acme").unwrap(), "pay", "order-1".parse().unwrap())
}

/// A client that comes back until it has a final answer. An impatient one goes away during its first requests, and its
/// node drops the work with it, as if the process had died.
async fn client(engine: Engine, provider: Provider, number: u64) -> Vec<u8> {
    let provider = &provider;
    for request in 0.. {
        let work = |claim: Claim| async move {
            let receipt: u32 = claim.call("charge", |key| provider.charge(key)).await?;
            Ok(Reply::status(201).body(receipt.to_string()))
        };
        let (tenant, key, command) = (scope().tenant().clone(), scope().key().clone(), Pay { cents: 5 });
        let run = engine.run(&tenant, &key, &command, work);
        let patience = if number.is_multiple_of(4) && request < 3 { Duration::from_secs(2) } else { DAY };
        let wait = match tokio::time::timeout(patience, run).await {
            Err(_) => Duration::from_secs(1),
            Ok(Ok(Outcome::Done { reply, .. })) => return reply.body,
            Ok(Ok(Outcome::Second(Answer::Replay { response, .. }))) => return response.body.unwrap(),
            Ok(Ok(
                Outcome::Failed { retry_after, .. }
                | Outcome::Unknown { retry_after, .. }
                | Outcome::Second(
                    Answer::InProgress { retry_after }
                    | Answer::RetryLater { retry_after }
                    | Answer::OutcomeUnknown { retry_after },
                ),
            )) => retry_after,
            Ok(other) => panic!("client {number}, request {request}: {other:?}"),
        };
        tokio::time::sleep(wait + Duration::from_millis(number)).await;
    }
    unreachable!("it comes back for ever")
}

/// A node of its own over the common store, a round trip away.
fn node(store: &FaultyStore, memory: &MemoryStore, clock: &Arc<TokioClock>, provider: &Provider) -> Engine {
    let class = match provider.dedupes {
        true => CallClass::Dedupes { retention: DAY },
        false => CallClass::QueryOnly { quiescence: Duration::from_secs(60) },
    };
    Engine::builder(store.clone())
        .clock(clock.clone())
        .call::<Pay>("charge", class)
        .reconciler::<Pay, _, _>("charge", memory.clone(), provider.clone())
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_the_provider_is_called_by_owners_alone() {
    for dedupes in [true, false] {
        let clock = Arc::new(TokioClock::new());
        let memory = MemoryStore::with_clock(clock.clone());
        let store = FaultyStore::over(memory.clone()).a_trip_away(Duration::from_millis(20));
        let provider = Provider { dedupes, ..Provider::default() };
        provider.out.store(true, Ordering::Relaxed);
        let nodes: Vec<_> = (0..4).map(|_| node(&store, &memory, &clock, &provider)).collect();
        let workers: Vec<_> = nodes
            .iter()
            .map(|node| {
                let node = node.clone();
                tokio::spawn(async move {
                    loop {
                        node.recover_once(10).await.unwrap();
                        tokio::time::sleep(Duration::from_secs(5)).await;
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..20)
            .map(|number| tokio::spawn(client(nodes[number as usize % 4].clone(), provider.clone(), number)))
            .collect();
        tokio::time::sleep(OUTAGE).await;
        assert_ne!(memory.record(&scope()).unwrap().status.name(), StatusName::Completed);
        provider.out.store(false, Ordering::Relaxed);
        for client in clients {
            assert_eq!(client.await.unwrap(), b"7", "every client gets the one answer");
        }
        workers.iter().for_each(|worker| worker.abort());
        let owners = memory.record(&scope()).unwrap().fence.get();
        let (calls, questions) = (provider.calls.load(Ordering::Relaxed), provider.questions.load(Ordering::Relaxed));
        println!("dedupes: {dedupes}; owners: {owners}; calls: {calls}, questions: {questions}");
        assert!(calls + questions <= owners, "{calls} calls and {questions} questions of {owners} owners");
        assert!(calls + questions >= 10, "there was no outage: {calls} calls and {questions} questions");
        assert_eq!(provider.effects.lock().unwrap().len(), 1);
    }
}

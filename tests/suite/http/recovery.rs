//! A payment of which nobody knows whether it happened, and the clients who wait for it.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::StatusCode;
use idem_axum::{CallClass, Claim, Fate, Idem, MemoryStore, Reply};
use idem_core::decide::Finding;
use idem_core::events::{Event, Observer, RecoveryStep};
use idem_core::{CallRecord, MemoryTx, Reconciler, Record, Settled, Transient};

use crate::http::bench::{Effects, LateClock, ProviderFailed, Server, idem, pay};
use crate::http::command::Pay;

/// A bank that lost its answer, and says later what became of the payment.
#[derive(Clone)]
struct Bank(Arc<Mutex<Finding>>);

#[async_trait]
impl Reconciler<MemoryTx> for Bank {
    async fn find(&self, _: &Record, _: &CallRecord) -> Result<Finding, Transient> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn settle(
        &self,
        _: &mut MemoryTx,
        _: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn Error + Send + Sync>> {
        let reply = match call.outcome::<u32>() {
            Some(receipt) => Reply::status(201).body(receipt?.to_string()),
            None => call.refusal().unwrap_or_else(|| Reply::status(422)),
        };
        Ok(Settled::Reply(reply))
    }
}

/// Counts the records that recovery has settled.
struct Settlements(Effects);

impl Observer for Settlements {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event, Event::Recovered { step: RecoveryStep::Applied | RecoveryStep::Rejected, .. }) {
            self.0.happen();
        }
    }
}

struct Bench {
    server: Server,
    idem: Idem,
    bank: Bank,
    clock: LateClock,
    effects: Effects,
    settled: Effects,
}

async fn bench() -> Bench {
    let (clock, effects, settled) = (LateClock::default(), Effects::default(), Effects::default());
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let bank = Bank(Arc::new(Mutex::new(Finding::StillUnknown)));
    let idem = idem(store.clone())
        .call::<Pay>("book", CallClass::QueryOnly { quiescence: Duration::from_secs(3600) })
        .reconciler::<Pay, _, _>("book", store, bank.clone())
        .observer(Settlements(settled.clone()))
        .build()
        .unwrap();
    let happening = effects.clone();
    let work = move |_, claim: Claim| {
        happening.happen();
        async move {
            let receipt: u32 = claim.call("book", async |_| Err(ProviderFailed(Fate::Unknown))).await?;
            Ok((StatusCode::CREATED, receipt.to_string()))
        }
    };
    Bench { server: Server::start(pay(idem.clone(), work)).await, idem, bank, clock, effects, settled }
}

impl Bench {
    async fn recover(&self) {
        // Past the grace, and past any wait between two questions.
        self.clock.pass(Duration::from_secs(3600));
        self.idem.engine().recover_once(10).await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_as_told_gets_the_answer_that_recovery_found() {
    for (finding, status, body) in [
        (Finding::applied(&7).unwrap(), 201, &b"7"[..]),
        (Finding::rejected(&Reply::status(402).body("declined")), 402, b"declined"),
    ] {
        let bench = bench().await;
        let first = bench.server.pay("k").await;
        assert_eq!((first.status, first.code().as_str()), (503, "IDEMPOTENCY_OUTCOME_UNKNOWN"));
        bench.recover().await;
        let still = bench.server.pay("k").await;
        assert_eq!((still.status, still.code().as_str()), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN"));
        assert_eq!((still.json()["next"].as_str(), bench.settled.count()), (Some("wait"), 0));
        assert!(still.header("retry-after").is_some());
        *bench.bank.0.lock().unwrap() = finding;
        bench.recover().await;
        let found = bench.server.pay("k").await;
        assert_eq!((found.status, found.body.as_slice(), found.replayed()), (status, body, true));
        assert_eq!((bench.effects.count(), bench.settled.count()), (1, 1), "nothing ran twice");
    }
}

//! Records that no client comes back for, over the memory store on a clock that stands still unless somebody waits.

mod asking;
mod working;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::store::Evidence;
use idem_core::{
    Answer, Begin, CallClass, CallError, CallRecord, CallState, Claim, Engine, Failure, Fate, IdempotencyKey,
    IdempotentCommand, MemoryStore, MemoryTx, Outcome, Reconciler, Record, Reply, ResourceRef, Scope, Settled, Status,
    StatusName, Tenant, Transient,
};

use crate::protocol::events::Heard;
use crate::support::clock::TokioClock;
use crate::support::faulty::FaultyStore;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

/// What the provider says when it is asked, and how often it was.
#[derive(Clone)]
struct Provider {
    says: Arc<Mutex<Result<Finding, &'static str>>>,
    asked: Arc<AtomicUsize>,
    settled: Arc<Mutex<Vec<String>>>,
    resumes: bool,
    hangs: bool,
    slow: bool,
    breaks: Option<Breaks>,
    makes: Option<ResourceRef>,
}

/// How it cannot settle.
#[derive(Debug, Clone, Copy)]
enum Breaks {
    Fails,
    Panics,
    Hangs,
}

impl Provider {
    fn new() -> Self {
        let says = Arc::new(Mutex::new(Ok(Finding::StillUnknown)));
        let (asked, settled) = (Arc::default(), Arc::default());
        Self { says, asked, settled, resumes: false, hangs: false, slow: false, breaks: None, makes: None }
    }

    fn says(&self, finding: Finding) {
        *self.says.lock().unwrap() = Ok(finding);
    }
}

#[async_trait]
impl Reconciler<MemoryTx> for Provider {
    async fn find(&self, _: &Record, _: &CallRecord) -> Result<Finding, Transient> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.slow {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.says.lock().unwrap().clone().map_err(Transient::new)
    }

    async fn settle(
        &self,
        _: &mut MemoryTx,
        _: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn std::error::Error + Send + Sync>> {
        match self.breaks {
            Some(Breaks::Panics) => panic!("on purpose"),
            Some(Breaks::Fails) => return Err("no such column".into()),
            Some(Breaks::Hangs) => std::future::pending().await,
            None => {}
        }
        self.settled.lock().unwrap().push(call.name.clone());
        if self.resumes {
            return Ok(Settled::Resume);
        }
        let reply = match call.outcome::<u32>() {
            Some(receipt) => Reply::status(201).body(receipt?.to_string()),
            None => call.refusal().unwrap(),
        };
        Ok(match &self.makes {
            Some(resource) => Settled::Made(reply, resource.clone()),
            None => Settled::Reply(reply),
        })
    }
}

struct Bench {
    memory: MemoryStore,
    store: FaultyStore,
    engine: Engine,
    provider: Provider,
    heard: Heard,
}

/// `charge` dedupes and can be asked, `mail` dedupes and cannot, `book` can only be asked, `text` neither. `wire` is told of by
/// webhooks alone, and who settles `astray` writes into another database.
fn bench(provider: Provider) -> Bench {
    let clock = Arc::new(TokioClock::new());
    let memory = MemoryStore::with_clock(clock.clone());
    let (store, heard) = (FaultyStore::over(memory.clone()), Heard::default());
    let engine = Engine::builder(store.clone())
        .clock(clock)
        .observer(heard.clone())
        .call::<Pay>("charge", CallClass::Dedupes { retention: 24 * HOUR })
        .call::<Pay>("mail", CallClass::Dedupes { retention: 24 * HOUR })
        .call::<Pay>("book", CallClass::QueryOnly { quiescence: HOUR })
        .call::<Pay>("text", CallClass::Neither)
        .call::<Pay>("wire", CallClass::QueryOnly { quiescence: HOUR })
        .call::<Pay>("astray", CallClass::QueryOnly { quiescence: HOUR })
        .reconciler::<Pay, _, _>("astray", MemoryStore::new(), provider.clone())
        .reconciler::<Pay, _, _>("charge", memory.clone(), provider.clone())
        .reconciler::<Pay, _, _>("book", memory.clone(), provider.clone())
        .build()
        .unwrap();
    Bench { memory, store, engine, provider, heard }
}

impl Bench {
    async fn claim(&self) -> Claim {
        self.claim_of(&key()).await
    }

    async fn claim_of(&self, key: &IdempotencyKey) -> Claim {
        match self.engine.begin(&tenant(), key, &Pay { cents: 5 }).await.unwrap() {
            Begin::Run(claim) => claim,
            Begin::Decided(answer) => panic!("{answer:?}"),
        }
    }

    /// A process that announced these calls, and died.
    async fn abandon(&self, calls: &[&str]) {
        let claim = self.claim().await;
        for call in calls {
            let _announced = claim.open(call).await.unwrap();
        }
    }

    /// As many processes that announced a call that can only be asked about, and died; their questions are due.
    async fn abandon_many(&self, number: u32) {
        for number in 0..number {
            let claim = self.claim_of(&format!("order-{number}").parse().unwrap()).await;
            let _announced = claim.open("book").await.unwrap();
        }
        tokio::time::sleep(10 * MINUTE).await;
        while self.engine.recover_once(1).await.unwrap().more {}
    }

    fn heard(&self, word: &str) -> usize {
        self.heard.all().iter().filter(|heard| heard.contains(word)).count()
    }

    async fn recover_for(&self, span: Duration) {
        let until = tokio::time::Instant::now() + span;
        while tokio::time::Instant::now() < until {
            self.engine.recover_once(10).await.unwrap();
            tokio::time::sleep(5 * MINUTE).await;
        }
    }

    fn record(&self) -> Record {
        self.memory.record(&Scope::new(tenant(), "pay", key())).unwrap()
    }

    fn state(&self) -> (StatusName, bool) {
        (self.record().status.name(), self.record().is_parked())
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_provider_said_yes_and_the_process_died() {
    for call in ["charge", "book"] {
        let bench = bench(Provider::new());
        bench.provider.says(Finding::applied(&7).unwrap());
        bench.abandon(&[call]).await;
        bench.recover_for(10 * MINUTE).await;
        let Status::Completed(finished) = bench.record().status else { panic!("{:?}", bench.record()) };
        assert_eq!((finished.response.status, finished.response.body.as_deref()), (201, Some(&b"7"[..])));
        assert_eq!(*bench.provider.settled.lock().unwrap(), [call], "business rows are settled with the record");
        let Outcome::Second(answer) =
            bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, |_| async { unreachable!() }).await.unwrap()
        else {
            panic!("it ran again")
        };
        assert!(matches!(answer, Answer::Replay { .. }), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_cannot_settle_panics_or_hangs_calls_a_person_in_the_end() {
    for breaks in [Breaks::Fails, Breaks::Panics, Breaks::Hangs] {
        let bench = bench(Provider { breaks: Some(breaks), ..Provider::new() });
        bench.provider.says(Finding::applied(&7).unwrap());
        bench.abandon(&["book"]).await;
        bench.recover_for(HOUR).await;
        assert_eq!(bench.state(), (StatusName::Unknown, false));
        bench.recover_for(80 * HOUR).await;
        assert_eq!(bench.state(), (StatusName::Unknown, true));
        assert!(bench.provider.asked.load(Ordering::Relaxed) < 1000, "later each time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_cannot_be_committed_calls_a_person_in_the_end() {
    let bench = bench(Provider::new());
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.abandon(&["astray"]).await;
    bench.recover_for(HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, false));
    bench.recover_for(80 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true));
    assert!(bench.provider.asked.load(Ordering::Relaxed) < 1000, "later each time");
}

/// The record did not come to say it; later requests get the resource, where no answer is kept.
#[tokio::test(start_paused = true)]
async fn who_settles_says_what_the_command_made() {
    let made = ResourceRef { kind: "payment".to_owned(), id: "pay_7".to_owned() };
    let bench = bench(Provider { makes: Some(made.clone()), ..Provider::new() });
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.abandon(&["book"]).await;
    bench.recover_for(10 * MINUTE).await;
    assert_eq!((bench.state().0, bench.record().resource), (StatusName::Completed, Some(made)));
}

#[tokio::test(start_paused = true)]
async fn the_provider_refused_and_the_process_died() {
    let bench = bench(Provider::new());
    bench.provider.says(Finding::rejected(&Reply::status(402).body("declined")));
    bench.abandon(&["book"]).await;
    bench.recover_for(10 * MINUTE).await;
    let Status::FailedReplayable(finished) = bench.record().status else { panic!("{:?}", bench.record()) };
    assert_eq!(finished.response.status, 402);
}

#[tokio::test(start_paused = true)]
async fn the_provider_does_not_know_it_yet() {
    let bench = bench(Provider::new());
    bench.provider.says(Finding::NotApplied);
    bench.abandon(&["book"]).await;
    bench.recover_for(30 * MINUTE).await;
    assert_eq!(bench.state(), (StatusName::Unknown, false), "it may still arrive");
    bench.recover_for(HOUR).await;
    assert_eq!(bench.state(), (StatusName::FailedRetryable, false), "its quiescence is over: it did not happen");
    assert_eq!(bench.record().calls[0].state, CallState::Withdrawn);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_cannot_be_asked_is_asked_again_and_then_a_person_is_called() {
    let bench = bench(Provider::new());
    *bench.provider.says.lock().unwrap() = Err("connection refused");
    bench.abandon(&["book"]).await;
    bench.recover_for(70 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, false));
    bench.recover_for(10 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true));
    assert_eq!(bench.heard("Parked"), 1, "once, though it is asked about every hour");
    let before = bench.provider.asked.load(Ordering::Relaxed);
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.recover_for(2 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Completed, false), "a parked record is still asked about");
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_person_has_a_parked_record_asked_about_at_once() {
    let bench = bench(Provider::new());
    bench.abandon(&["book"]).await;
    bench.recover_for(80 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true));
    // The question of this hour is asked; the next one is an hour away.
    let before = bench.provider.asked.load(Ordering::Relaxed);
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.engine.ask_again(&bench.record().scope, "ada", "the bank is back").await.unwrap();
    bench.engine.recover_once(10).await.unwrap();
    assert_eq!(bench.state(), (StatusName::Completed, false));
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), before + 1);
}

/// The states that these come to; that each record comes to one, however it was left, is tested beside.
#[tokio::test(start_paused = true)]
async fn what_abandoned_calls_come_to_where_their_provider_never_knows() {
    for (calls, settled) in [
        (vec![], (StatusName::FailedRetryable, false)),
        (vec!["charge"], (StatusName::Unknown, true)),
        (vec!["book"], (StatusName::Unknown, true)),
        (vec!["mail"], (StatusName::FailedRetryable, true)),
        (vec!["text"], (StatusName::Unknown, true)),
        (vec!["charge", "text"], (StatusName::Unknown, true)),
        (vec!["mail", "book"], (StatusName::Unknown, true)),
    ] {
        let bench = bench(Provider::new());
        bench.abandon(&calls).await;
        bench.recover_for(80 * HOUR).await;
        assert_eq!(bench.state(), settled, "abandoned with {calls:?} open");
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_is_known_and_another_is_still_to_be_made() {
    let bench = bench(Provider { resumes: true, ..Provider::new() });
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.abandon(&["book", "mail"]).await;
    bench.recover_for(10 * MINUTE).await;
    assert_eq!(bench.state(), (StatusName::FailedRetryable, false));
    tokio::time::sleep(MINUTE).await;
    let claim = bench.claim().await;
    let call = claim.open("book").await.unwrap();
    let receipt: u32 = call.run(|_| async { unreachable!("it was made before") as Result<u32, Never> }).await.unwrap();
    assert_eq!((receipt, claim.attempt()), (7, 2));
}

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

impl idem_core::CallError for Never {
    fn fate(&self) -> idem_core::Fate {
        idem_core::Fate::Unknown
    }
}

#[tokio::test(start_paused = true)]
async fn a_live_owner_is_left_alone() {
    let bench = bench(Provider::new());
    let claim = bench.claim().await;
    let _announced = claim.open("book").await.unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    let recovered = bench.engine.recover_once(10).await.unwrap();
    assert_eq!(recovered.looked, 0);
    assert_eq!(bench.state(), (StatusName::InProgress, false));
}

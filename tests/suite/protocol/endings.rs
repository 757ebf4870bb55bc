//! How recovery ends what no client comes back for: all of it, once, and with nothing kept that is not anybody's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::operator::Resolution;
use idem_core::store::Evidence;
use idem_core::worker::{Worker, WorkerOptions};
use idem_core::{
    Answer, Begin, CallClass, CallRecord, CallState, Claim, Engine, Failure, IdempotencyKey, IdempotentCommand,
    MemoryStore, MemoryTx, Outcome, Reconciler, Record, Reply, Scope, Settled, Status, StatusName, Tenant, Transient,
};

use crate::support::clock::TokioClock;
use crate::support::faulty::FaultyStore;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

/// Says one thing, whatever it is asked, and counts how often it was.
#[derive(Clone)]
struct Provider {
    says: Option<Finding>,
    settles: bool,
    asked: Arc<AtomicUsize>,
    settled: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    /// `None`: it cannot be asked.
    fn that_says(says: impl Into<Option<Finding>>) -> Self {
        Self { says: says.into(), settles: true, asked: Arc::default(), settled: Arc::default() }
    }
}

#[async_trait]
impl Reconciler<MemoryTx> for Provider {
    async fn find(&self, _: &Record, _: &CallRecord) -> Result<Finding, Transient> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.says.clone().ok_or_else(|| Transient::new("connection refused"))
    }

    async fn settle(
        &self,
        _: &mut MemoryTx,
        _: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn std::error::Error + Send + Sync>> {
        if !self.settles {
            std::future::pending::<()>().await;
        }
        self.settled.lock().unwrap().push(call.name.clone());
        Ok(Settled::Reply(match call.refusal() {
            Some(refusal) => refusal,
            None => Reply::status(201),
        }))
    }
}

struct Bench {
    memory: MemoryStore,
    engine: Engine,
    provider: Provider,
}

/// `charge` dedupes and can be asked, `mail` dedupes and cannot, `book` can only be asked, `text` neither. Requests of the
/// store take that long to arrive.
fn bench(provider: Provider, trip: Duration) -> Bench {
    let clock = Arc::new(TokioClock::new());
    let memory = MemoryStore::with_clock(clock.clone());
    let dedupes = CallClass::Dedupes { retention: 24 * HOUR };
    let engine = Engine::builder(FaultyStore::over(memory.clone()).a_trip_away(trip))
        .clock(clock)
        .call::<Pay>("charge", dedupes)
        .call::<Pay>("mail", dedupes)
        .call::<Pay>("book", CallClass::QueryOnly { quiescence: HOUR })
        .call::<Pay>("text", CallClass::Neither)
        .reconciler::<Pay, _, _>("charge", memory.clone(), provider.clone())
        .reconciler::<Pay, _, _>("book", memory.clone(), provider.clone())
        .build()
        .unwrap();
    Bench { memory, engine, provider }
}

/// How an attempt leaves its record.
#[derive(Debug, Clone, Copy)]
enum Leaves {
    Dies,
    /// The second one dies too.
    DiesTwice,
    Fails,
    NobodyKnows,
}

impl Bench {
    /// An attempt that announces these calls, and ends like that; one that the record does not let run does nothing.
    async fn attempt(&self, calls: &[&str], ends: fn(&str) -> Option<Failure>) {
        let Begin::Run(claim) = self.engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap() else { return };
        let open = async |claim: &Claim| {
            for call in calls {
                let _announced = claim.open(call).await.unwrap();
            }
        };
        match ends("the answer was lost") {
            None => open(&claim).await,
            Some(failure) => {
                let work = async |claim: Claim| {
                    open(&claim).await;
                    Err(failure)
                };
                self.engine.conduct(claim, work, |_| ()).await;
            }
        }
    }

    async fn is_left(&self, calls: &[&str], how: Leaves) {
        let dies = |_: &str| None;
        match how {
            Leaves::Dies => self.attempt(calls, dies).await,
            Leaves::DiesTwice => {
                self.attempt(calls, dies).await;
                tokio::time::sleep(MINUTE).await;
                self.attempt(calls, dies).await;
            }
            Leaves::Fails => self.attempt(calls, |why| Some(Failure::retryable(why))).await,
            Leaves::NobodyKnows => self.attempt(calls, |why| Some(Failure::unknown(why))).await,
        }
    }

    /// Workers look after it for so long.
    async fn recover_for(&self, span: Duration) {
        let until = tokio::time::Instant::now() + span;
        while tokio::time::Instant::now() < until {
            self.engine.recover_once(10).await.unwrap();
            tokio::time::sleep(15 * MINUTE).await;
        }
    }

    async fn learns(&self, call: &str, state: CallState) {
        let key = self.call(call).key;
        assert!(self.engine.evidence(&Evidence { key, source: "webhook".to_owned(), state }).await.unwrap());
    }

    fn record(&self) -> Record {
        self.memory.record(&scope()).unwrap()
    }

    fn call(&self, name: &str) -> CallRecord {
        self.record().calls.iter().find(|call| call.name == name).unwrap().clone()
    }

    fn asked(&self) -> usize {
        self.provider.asked.load(Ordering::Relaxed)
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

fn scope() -> Scope {
    Scope::new(tenant(), "pay", key())
}

/// What the protocol calls settled.
fn is_settled(record: &Record) -> bool {
    match record.status {
        Status::Completed(_) | Status::FailedReplayable(_) => true,
        Status::FailedRetryable { parked_at, .. } => parked_at.is_some() || !record.has_open_call(),
        Status::Unknown { parked_at, .. } => parked_at.is_some(),
        Status::InProgress { .. } | Status::Expired { .. } => false,
    }
}

/// As a provider says it, with headers that belong to nobody else.
fn declined() -> Reply {
    let reply = Reply::status(402).header("content-type", "text/plain").header("set-cookie", "session=1");
    reply.header("authorization", "Bearer 1").header("x-request-id", "1").body("declined")
}

fn rejected() -> CallState {
    match Finding::rejected(&declined()) {
        Finding::Rejected(outcome) => CallState::Rejected(outcome),
        other => panic!("{other:?}"),
    }
}

/// Left in every way, with calls of every class open, and a provider that says anything it can say; nobody ever comes back.
#[tokio::test(start_paused = true)]
async fn every_record_settles_without_clients() {
    let findings = [
        None,
        Some(Finding::StillUnknown),
        Some(Finding::NotApplied),
        Some(Finding::applied(&7).unwrap()),
        Some(Finding::rejected(&declined())),
    ];
    let sets: [&[&str]; 8] = [
        &[],
        &["charge"],
        &["book"],
        &["mail"],
        &["text"],
        &["charge", "text"],
        &["mail", "book"],
        &["charge", "mail"],
    ];
    let mut seen = std::collections::BTreeSet::new();
    for how in [Leaves::Dies, Leaves::DiesTwice, Leaves::Fails, Leaves::NobodyKnows] {
        for calls in sets {
            for says in &findings {
                let bench = bench(Provider::that_says(says.clone()), Duration::ZERO);
                bench.is_left(calls, how).await;
                seen.insert(bench.record().status.name().to_string());
                bench.recover_for(80 * HOUR).await;
                let record = bench.record();
                assert!(is_settled(&record), "{how:?} with {calls:?} open, says {says:?}: {record:?}");
            }
        }
    }
    assert_eq!(seen.len(), 3, "in progress, failed and unknown: {seen:?}");
}

/// All of them have read that it is due before the first one takes it.
#[tokio::test(start_paused = true)]
async fn workers_ask_once_between_them() {
    let bench = bench(Provider::that_says(Finding::StillUnknown), Duration::from_millis(20));
    bench.is_left(&["book"], Leaves::NobodyKnows).await;
    tokio::time::sleep(10 * MINUTE).await;
    let asked = futures_util::future::join_all((0..4).map(|_| bench.engine.recover_once(10))).await;
    let sum = |count: fn(idem_core::recovery::Recovered) -> u64| -> u64 {
        asked.iter().map(|recovered| count(*recovered.as_ref().unwrap())).sum()
    };
    assert_eq!((sum(|recovered| recovered.looked), sum(|recovered| recovered.asked), bench.asked()), (4, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_recovers_and_sweeps_until_it_is_stopped() {
    let bench = bench(Provider::that_says(Finding::applied(&7).unwrap()), Duration::ZERO);
    let worker = Worker::start(bench.engine.clone(), WorkerOptions::default());
    bench.is_left(&["book"], Leaves::Dies).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!((bench.record().status.name(), bench.asked()), (StatusName::InProgress, 0), "a client may come");
    tokio::time::sleep(MINUTE).await;
    assert_eq!((bench.record().status.name(), bench.asked()), (StatusName::Completed, 1));
    tokio::time::sleep(25 * HOUR).await;
    assert_eq!(bench.record().status.name(), StatusName::Expired);
    worker.stop().await;

    let left = self::bench(Provider::that_says(Finding::applied(&7).unwrap()), Duration::ZERO);
    let worker = Worker::start(left.engine.clone(), WorkerOptions::default());
    left.is_left(&["book"], Leaves::Dies).await;
    worker.stop().await;
    tokio::time::sleep(HOUR).await;
    assert_eq!((left.record().status.name(), left.asked()), (StatusName::InProgress, 0));
}

/// By the provider when it is asked, by its webhook, by a person who names the call, and by one who does not.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_kept_with_those_headers_alone_that_any_answer_is_kept_with() {
    for way in 0..4 {
        let bench = bench(Provider::that_says(Finding::rejected(&declined())), Duration::ZERO);
        let call = if way == 0 { "book" } else { "text" };
        bench.is_left(&[call], Leaves::Dies).await;
        if way == 1 {
            bench.learns(call, rejected()).await;
        }
        bench.recover_for(HOUR).await;
        let verdict = match way {
            2 => Some(Resolution::resume().rejected(call, &declined())),
            3 => Some(Resolution::refused(declined())),
            _ => None,
        };
        if let Some(verdict) = verdict {
            bench.engine.resolve(&scope(), &verdict, "ada", "on the statement").await.unwrap();
        }
        let kept = bench.call(call).refusal().unwrap_or_else(|| panic!("way {way}: {:?}", bench.record()));
        assert_eq!((kept.status, kept.body.as_slice()), (402, &b"declined"[..]));
        assert_eq!(kept.headers, [("content-type".to_owned(), b"text/plain".to_vec())], "way {way}");
    }
}

/// The application's rows are locked by somebody: who asked for the answer is not kept waiting, and the next one asks again.
#[tokio::test(start_paused = true)]
async fn a_settlement_that_hangs_keeps_no_request_waiting() {
    let provider = Provider { settles: false, ..Provider::that_says(Finding::applied(&7).unwrap()) };
    let bench = bench(provider, Duration::ZERO);
    bench.is_left(&["book"], Leaves::NobodyKnows).await;
    for asked in 1..4 {
        tokio::time::sleep(MINUTE).await;
        let came = tokio::time::Instant::now();
        let run = async {
            bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, |_| async { unreachable!("it is unknown") }).await
        };
        let told = tokio::time::timeout(MINUTE, run).await.expect("it is kept waiting").unwrap();
        assert!(matches!(told, Outcome::Second(Answer::OutcomeUnknown { .. })), "{told:?}");
        assert!(came.elapsed() <= Duration::from_secs(4), "{:?}", came.elapsed());
        assert_eq!(bench.asked(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_a_webhook_tells_of_ends_the_only_attempt() {
    let bench = bench(Provider::that_says(Finding::StillUnknown), Duration::ZERO);
    bench.is_left(&["book"], Leaves::NobodyKnows).await;
    bench.learns("book", rejected()).await;
    bench.recover_for(HOUR).await;
    let Status::FailedReplayable(finished) = bench.record().status else { panic!("{:?}", bench.record()) };
    assert_eq!((finished.response.status, bench.asked()), (402, 0));
}

/// The first attempt was declined; before its webhook came the second one was made under the same key, and taken. The
/// provider knows. Where nobody can be asked a person decides.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_an_earlier_attempt_does_not_decide_about_a_later_one() {
    for (call, ends) in [("charge", StatusName::Completed), ("mail", StatusName::FailedRetryable)] {
        let bench = bench(Provider::that_says(Finding::applied(&7).unwrap()), Duration::ZERO);
        bench.is_left(&[call], Leaves::Fails).await;
        tokio::time::sleep(MINUTE).await;
        bench.is_left(&[call], Leaves::NobodyKnows).await;
        assert_eq!(bench.record().attempts, 2);
        bench.learns(call, rejected()).await;
        bench.recover_for(30 * HOUR).await;
        let record = bench.record();
        assert!(is_settled(&record), "{record:?}");
        assert_eq!(bench.call(call).refusal(), None, "{record:?}");
        assert!(record.status.name() == ends || record.is_parked(), "{record:?}");
    }
}

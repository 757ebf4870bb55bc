//! What an observer hears of requests, and the numbers that metrics make of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::events::{AnswerKind, CallFate, Event, How, MetricsObserver, Observer, RecoveryStep};
use idem_core::store::{Oldest, Swept};
use idem_core::{
    CallClass, CallError, Engine, Failure, Fate, IdempotencyKey, IdempotentCommand, MemoryStore, Outcome, Reply,
    StatusName, Tenant,
};
use metrics_util::debugging::DebuggingRecorder;

use crate::support::clock::TokioClock;
use crate::support::faulty::{Fails, FaultyStore, Request};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

/// Events as words, without the times that differ from run to run.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn observe(&self, event: &Event<'_>) {
        let words = match event {
            // They come with the time of the day, not with a request.
            Event::Oldest(_) | Event::WorkerSeen { .. } | Event::NoWorker { .. } => return,
            Event::Claimed { how, attempt, .. } => format!("claimed {how:?} {attempt}"),
            Event::Answered { kind, .. } => format!("answered {kind}"),
            Event::Ended { status, .. } => format!("ended {status}"),
            Event::Called { call, fate, .. } => format!("called {call} {fate:?}"),
            Event::Recovered { step, .. } => format!("recovered {step:?}"),
            Event::StoreFailed { code } => format!("store failed {code}"),
            Event::Lost { .. } => "lost".to_owned(),
            Event::NotStored { .. } => "not stored".to_owned(),
            Event::Hung { operation, .. } => format!("hung {operation}"),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(words);
    }
}

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the provider: {0:?}")]
struct Provider(Fate);

impl CallError for Provider {
    fn fate(&self) -> Fate {
        self.0
    }
}

struct Bench {
    heard: Heard,
    store: FaultyStore,
    engine: Engine,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let store = FaultyStore::over(MemoryStore::with_clock(clock.clone()));
        let heard = Heard::default();
        let engine = Engine::builder(store.clone()).clock(clock).observer(heard.clone());
        let retention = Duration::from_secs(86_400);
        let engine = engine.call::<Pay>("charge", CallClass::Dedupes { retention }).build().unwrap();
        Self { heard, store, engine }
    }

    async fn run(&self, cents: u64, ends: Result<u16, Fate>) -> Outcome {
        let work = |claim: idem_core::Claim| async move {
            let status: u16 = claim.call("charge", |_| async move { ends.map_err(Provider) }).await?;
            Ok::<_, Failure>(Reply::status(status))
        };
        self.engine.run(&tenant(), &key(), &Pay { cents }, work).await.unwrap()
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_how_each_request_went() {
    let bench = Bench::new();
    let outcome = bench.run(5, Err(Fate::NeverLeft)).await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert_eq!(bench.heard.take(), ["claimed First 1", "called charge NeverLeft", "ended failed_retryable"]);

    tokio::time::sleep(Duration::from_secs(3600)).await;
    bench.run(5, Ok(201)).await;
    assert_eq!(bench.heard.take(), ["claimed Retry 2", "called charge Applied", "ended completed"]);

    bench.run(5, Ok(201)).await;
    bench.run(6, Ok(201)).await;
    assert_eq!(bench.heard.take(), ["answered replay", "answered mismatch"]);
}

/// A final refusal may look like a success, and is none.
#[tokio::test(start_paused = true)]
async fn an_observer_hears_how_the_record_stands_whatever_the_status_of_the_answer() {
    let bench = Bench::new();
    let refused = async |_| Err(Failure::replayable(Reply::status(303)));
    let outcome = bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, refused).await.unwrap();
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    assert_eq!(bench.heard.take(), ["claimed First 1", "ended failed_replayable"]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_take_overs_lost_claims_and_a_failing_store() {
    let bench = Bench::new();
    let abandoned = bench.engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap();
    let idem_core::Begin::Run(abandoned) = abandoned else { panic!("{abandoned:?}") };
    let waits = bench.run(5, Ok(201)).await;
    assert!(matches!(waits, Outcome::Second(_)), "{waits:?}");
    assert_eq!(bench.heard.take(), ["claimed First 1", "answered in_progress"]);

    // Its process sleeps while the lease runs out, and another takes over.
    bench.store.plan(Request::TakeOver, Fails::Before);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    bench.run(5, Ok(201)).await;
    let events = bench.heard.take();
    assert_eq!(events, ["claimed TakeOver 2", "called charge Applied", "ended completed"], "one failure is nobody's");
    bench.engine.conduct(abandoned, |_| async { Ok(Reply::status(201)) }, |_| ()).await;
    assert_eq!(bench.heard.take(), ["lost"]);

    for _ in 0..2 {
        bench.store.plan(Request::Claim, Fails::Before);
    }
    let failed = bench.engine.begin(&tenant(), &"order-2".parse().unwrap(), &Pay { cents: 5 }).await.unwrap_err();
    assert_eq!(bench.heard.take(), [format!("store failed {}", failed.code())]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_an_end_that_is_not_stored_within_the_patience_and_of_its_end() {
    let bench = Bench::new();
    // By the eighth try more than the five seconds of patience are over.
    (0..8).for_each(|_| bench.store.plan(Request::Finish, Fails::Before));
    let outcome = bench.run(5, Ok(201)).await;
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    assert_eq!(bench.heard.take(), ["claimed First 1", "called charge Applied", "not stored", "ended completed"]);
}

/// Every event there is, so that no number goes without its line in the documentation.
pub(super) fn one_of_each() -> Vec<Event<'static>> {
    let (operation, call, age) = ("pay", "charge", Duration::from_secs(3));
    let ended = |status| Event::Ended { operation, status, ran: age, stored: age };
    let answered = |kind| Event::Answered { operation, kind, age };
    vec![
        Event::Claimed { operation, how: How::TakeOver, attempt: 2 },
        answered(AnswerKind::Replay),
        answered(AnswerKind::Mismatch),
        answered(AnswerKind::Expired),
        ended(StatusName::Completed),
        ended(StatusName::Unknown),
        Event::NotStored { operation },
        Event::Lost { operation },
        Event::Hung { operation, ran: age },
        Event::Called { operation, call, fate: CallFate::Applied, took: age },
        Event::StoreFailed { code: "DATABASE_BUSY" },
        Event::Recovered { operation, step: RecoveryStep::Stranded },
        Event::Contradicted { operation, call, stands: CallFate::Rejected, told: CallFate::Applied },
        Event::Parked { operation, age },
        Event::Swept(Swept { bodies: 1, expired: 2, purged: 3 }),
        Event::Oldest(Oldest { abandoned: age, unknown: age, parked: age }),
        Event::WorkerSeen { silence: age },
        Event::NoWorker { silence: age },
        Event::WorkerBroke { round: "recovery" },
    ]
}

#[test]
fn every_number_has_its_line_in_the_documentation() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || one_of_each().iter().for_each(|event| MetricsObserver.observe(event)));
    let counted: Vec<_> = snapshotter.snapshot().into_vec();
    let names: BTreeSet<_> = counted.iter().map(|(key, ..)| key.key().name().to_owned()).collect();

    let page = include_str!("../../../docs/operations.md");
    let table = page.lines().filter_map(|line| line.strip_prefix("| `idempotency.")?.split_once('`'));
    let documented: BTreeSet<_> = table.map(|(name, _)| format!("idempotency.{name}")).collect();
    assert_eq!(names, documented);
}

#[test]
fn a_record_that_nobody_knows_about_is_counted_whichever_way_it_came_to_it() {
    use metrics_util::debugging::DebugValue;
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || one_of_each().iter().for_each(|event| MetricsObserver.observe(event)));
    let counted = snapshotter.snapshot().into_vec();
    let of = |name: &str| {
        let values = counted.iter().filter(|(key, ..)| key.key().name() == name);
        values.map(|(.., value)| if let DebugValue::Counter(count) = value { *count } else { 0 }).sum::<u64>()
    };
    assert_eq!(of("idempotency.unknown_state.count"), 2, "the work's own end, and recovery");
    assert_eq!(of("idempotency.conflict.different_request.count"), 1);
    assert_eq!(of("idempotency.answer.count"), 3);
    assert_eq!(of("idempotency.swept.count"), 6);
}

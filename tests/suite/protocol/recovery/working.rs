//! The worker's loops, and what the engine tells where there are none.

use idem_core::events::{Event, MetricsObserver, Observer};
use idem_core::store::Keeping;
use idem_core::worker::{Worker, WorkerOptions};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::time::Instant;

use super::*;
use crate::support::faulty::{Fails, Request};

fn options() -> WorkerOptions {
    WorkerOptions::default()
}

#[tokio::test(start_paused = true)]
async fn a_round_that_panics_is_told_of_and_the_next_one_recovers() {
    let bench = bench(Provider::new());
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.abandon(&["book"]).await;
    bench.store.plan(Request::Due, Fails::Panics);
    bench.store.plan(Request::Sweep, Fails::Panics);
    let worker = Worker::start(bench.engine.clone(), options());
    tokio::time::sleep(10 * MINUTE).await;
    worker.stop().await;
    assert_eq!(bench.store.planned(), 0);
    assert_eq!((bench.heard(r#"WorkerBroke { round: "recovery" }"#), bench.heard(r#"{ round: "sweep" }"#)), (1, 1));
    assert_eq!(bench.state().0, StatusName::Completed);
    assert!(bench.heard("Swept") > 5, "the sweep goes on: {:?}", bench.heard.all());
}

#[tokio::test(start_paused = true)]
async fn a_page_is_as_long_as_it_was_asked_to_be_and_a_round_has_each_record_once() {
    let bench = bench(Provider { slow: true, ..Provider::new() });
    bench.abandon_many(5).await;
    bench.provider.asked.store(0, Ordering::Relaxed);
    tokio::time::sleep(HOUR).await;
    let mut pages = Vec::new();
    for _ in 0..5 {
        let page = bench.engine.recover_once(2).await.unwrap();
        pages.push((page.looked, page.asked));
        if !page.more {
            break;
        }
        // What was asked about is due again before the round is over; it is the next round's.
        tokio::time::sleep(HOUR).await;
    }
    assert_eq!(pages, [(2, 2), (2, 2), (1, 1)]);
    tokio::time::sleep(HOUR).await;
    assert_eq!(bench.engine.recover_once(10).await.unwrap().looked, 5, "the next round");
}

#[tokio::test(start_paused = true)]
async fn providers_are_asked_about_several_records_at_once_up_to_a_bound() {
    let bench = bench(Provider { slow: true, ..Provider::new() });
    bench.abandon_many(20).await;
    tokio::time::sleep(HOUR).await;
    let begun = Instant::now();
    assert_eq!(bench.engine.recover_once(100).await.unwrap().asked, 20);
    assert_eq!(begun.elapsed().as_secs(), 3, "eight at once, a second each");
}

/// Forty providers' questions hang for fifteen seconds each; nobody waits for ten minutes.
#[tokio::test(start_paused = true)]
async fn a_worker_stops_within_the_time_of_one_question_though_every_reconciler_hangs() {
    let bench = bench(Provider { hangs: true, ..Provider::new() });
    bench.abandon_many(40).await;
    tokio::time::sleep(HOUR).await;
    bench.provider.asked.store(0, Ordering::Relaxed);
    let worker = Worker::start(bench.engine.clone(), options());
    while bench.provider.asked.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told = Instant::now();
    worker.stop().await;
    assert!(told.elapsed() <= Duration::from_secs(15), "{:?}", told.elapsed());
    assert!(bench.provider.asked.load(Ordering::Relaxed) <= 8, "no other was begun");
}

/// A store that never answers does not hold up the end of the process for ever either.
#[tokio::test(start_paused = true)]
async fn a_worker_stops_though_its_store_hangs() {
    for request in [Request::Due, Request::Tend, Request::Sweep] {
        let bench = bench(Provider::new());
        bench.abandon(&["book"]).await;
        tokio::time::sleep(10 * MINUTE).await;
        let hold = bench.store.hold(request);
        let worker = Worker::start(bench.engine.clone(), options());
        hold.arrived().await;
        let told = Instant::now();
        worker.stop().await;
        assert!(told.elapsed() <= Duration::from_secs(30), "{request:?}: {:?}", told.elapsed());
    }
}

/// What an engine tells of workers.
#[derive(Clone, Default)]
struct Signs(Arc<Mutex<Vec<String>>>);

impl Observer for Signs {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::WorkerSeen { silence } => self.0.lock().unwrap().push(format!("seen {}", silence.as_secs())),
            Event::NoWorker { silence } => self.0.lock().unwrap().push(format!("none {}", silence.as_secs())),
            _ => {}
        }
    }
}

impl Signs {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A dead worker tells nobody, so whoever gets requests does.
#[tokio::test(start_paused = true)]
async fn that_no_worker_is_alive_is_told_by_an_engine_that_gets_requests() {
    let (clock, signs) = (Arc::new(TokioClock::new()), Signs::default());
    let memory = MemoryStore::with_clock(clock.clone());
    let engine = Engine::builder(memory.clone()).clock(clock).observer(signs.clone()).build().unwrap();
    let request = async |after: Duration| {
        tokio::time::sleep(after).await;
        let done = engine.run(&tenant(), &key(), &Pay { cents: 5 }, async |_| Ok(Reply::status(201))).await.unwrap();
        assert!(matches!(done, Outcome::Done { .. } | Outcome::Second(_)), "{done:?}");
        signs.take()
    };
    // There never was one: that is told once there could have been.
    assert_eq!(request(Duration::ZERO).await, [""; 0]);
    assert_eq!(request(MINUTE).await, ["seen 60"]);
    assert_eq!(request(Duration::from_secs(59)).await, [""; 0], "once a minute");
    assert_eq!(request(10 * MINUTE).await, ["none 719"]);
    // One comes, and goes.
    memory.sign_of_life().await.unwrap();
    assert_eq!(request(MINUTE).await, ["seen 60"]);
    assert_eq!(request(9 * MINUTE).await, ["none 600"]);
    // A worker that runs says so itself.
    let worker = Worker::start(engine.clone(), options());
    tokio::time::sleep(Duration::from_secs(8)).await;
    worker.stop().await;
    assert_eq!(signs.take(), ["none 606", "seen 0"]);
}

#[test]
fn the_gauge_of_silence_goes_back_when_a_worker_is_there_again() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let gauge = |event: Event<'_>| {
        metrics::with_local_recorder(&recorder, || MetricsObserver.observe(&event));
        let taken = snapshotter.snapshot().into_vec();
        let value = taken.into_iter().find(|(key, ..)| key.key().name() == "idempotency.worker.silence.seconds");
        match value.map(|(.., value)| value) {
            Some(DebugValue::Gauge(seconds)) => seconds.into_inner(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(gauge(Event::NoWorker { silence: HOUR }), 3600.0);
    assert_eq!(gauge(Event::WorkerSeen { silence: Duration::ZERO }), 0.0);
}

/// Whoever counts must not be who ends it.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_disturbs_neither_requests_nor_workers() {
    struct Broken;
    impl Observer for Broken {
        fn observe(&self, event: &Event<'_>) {
            panic!("on purpose: {event:?}");
        }
    }
    let clock = Arc::new(TokioClock::new());
    let memory = MemoryStore::with_clock(clock.clone());
    let (provider, quiescence) = (Provider::new(), HOUR);
    let engine = Engine::builder(memory.clone())
        .clock(clock)
        .observer(Broken)
        .call::<Pay>("book", CallClass::QueryOnly { quiescence })
        .reconciler::<Pay, _, _>("book", memory.clone(), provider.clone())
        .build()
        .unwrap();
    provider.says(Finding::applied(&7).unwrap());
    let work = async |claim: Claim| {
        let _announced = claim.open("book").await?;
        Err(Failure::unknown("the connection was reset"))
    };
    let unknown = engine.run(&tenant(), &key(), &Pay { cents: 5 }, work).await.unwrap();
    assert!(matches!(unknown, Outcome::Unknown { .. }), "{unknown:?}");
    let worker = Worker::start(engine, options());
    tokio::time::sleep(MINUTE).await;
    worker.stop().await;
    let record = memory.record(&Scope::new(tenant(), "pay", key())).unwrap();
    assert_eq!(record.status.name(), StatusName::Completed);
}

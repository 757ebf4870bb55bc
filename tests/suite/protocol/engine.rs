//! The engine over the memory store, on a clock that stands still unless somebody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem_core::{
    Answer, CallClass, CallError, CallSpec, CallState, Claim, ConfigError, DownstreamKey, Engine, Failure, Fate,
    IdempotencyKey, IdempotentCommand, KeyForm, MemoryStore, Outcome, Record, Reply, Rules, Scope, StatusName, Tenant,
};

use crate::support::clock::TokioClock;
use crate::support::faulty::{Fails, FaultyStore, Request};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

struct Bench {
    memory: MemoryStore,
    store: FaultyStore,
    engine: Engine,
    /// How often the provider was asked, and what for.
    asked: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
#[error("the provider failed: {0:?}")]
struct ProviderFailed(Fate);

impl CallError for ProviderFailed {
    fn fate(&self) -> Fate {
        self.0
    }
}

impl Bench {
    fn new() -> Arc<Self> {
        let clock = Arc::new(TokioClock::new());
        let memory = MemoryStore::with_clock(clock.clone());
        let store = FaultyStore::over(memory.clone());
        let engine = Engine::builder(store.clone())
            .clock(clock)
            .call::<Pay>("charge", CallClass::Dedupes { retention: DAY })
            .call::<Pay>("book", CallClass::QueryOnly { quiescence: DAY })
            .call::<Pay>("text", CallClass::Neither)
            .build()
            .unwrap();
        Arc::new(Self { memory, store, engine, asked: AtomicUsize::new(0) })
    }

    async fn run<W, F>(&self, cents: u64, work: W) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        self.engine.run(&tenant(), &key(), &Pay { cents }, work).await.unwrap()
    }

    /// A run whose one call ends like that.
    async fn pay(self: &Arc<Self>, call: &'static str, ends: Result<u32, Fate>) -> Outcome {
        let this = Arc::clone(self);
        self.run(5, |claim| async move {
            let receipt: u32 = claim.call(call, |key| this.ask(key, ends)).await?;
            Ok(Reply::status(201).body(receipt.to_string()))
        })
        .await
    }

    async fn ask(self: Arc<Self>, _: DownstreamKey, ends: Result<u32, Fate>) -> Result<u32, ProviderFailed> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        ends.map_err(ProviderFailed)
    }

    fn record(&self) -> Record {
        self.memory.record(&Scope::new(tenant(), "pay", key())).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn key() -> IdempotencyKey {
    "order-1".parse().unwrap()
}

async fn reply(body: &str) -> Result<Reply, Failure> {
    Ok(Reply::status(201).header("location", "/x").header("set-cookie", "a=b").body(body))
}

fn replayed(outcome: &Outcome) -> Option<(&[u8], u16)> {
    match outcome {
        Outcome::Second(Answer::Replay { response, .. }) => Some((response.body.as_deref()?, response.status)),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_runs_and_the_second_replays() {
    let bench = Bench::new();
    let first = bench.run(5, |_| reply("paid")).await;
    let Outcome::Done { reply: answer, .. } = first else { panic!("{first:?}") };
    assert!(answer.headers.iter().any(|(name, _)| name == "set-cookie"), "the first client gets all of it");

    let second = bench.run(5, |_| async { panic!("it ran twice") }).await;
    assert_eq!(replayed(&second), Some((&b"paid"[..], 201)));
    let Outcome::Second(Answer::Replay { response, .. }) = second else { unreachable!() };
    assert_eq!(response.headers, [("location".to_owned(), b"/x".to_vec())], "a cookie is nobody else's");
}

#[tokio::test(start_paused = true)]
async fn another_command_under_the_key_runs_nothing() {
    let bench = Bench::new();
    bench.run(5, |_| reply("paid")).await;
    let other = bench.run(6, |_| async { panic!("another command ran") }).await;
    let Outcome::Second(Answer::Mismatch(original)) = other else { panic!("{other:?}") };
    assert_eq!((original.state, original.status, original.safe_new_key), (StatusName::Completed, Some(201), false));
    assert_eq!(original.location.as_deref(), Some(&b"/x"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_runs_once() {
    let bench = Bench::new();
    bench.store.plan(Request::Claim, Fails::After);
    assert!(matches!(bench.run(5, |_| reply("paid")).await, Outcome::Done { .. }));
    assert_eq!(bench.record().attempts, 1);
    assert_eq!(bench.store.planned(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_runs_nothing() {
    let bench = Bench::new();
    bench.store.plan(Request::Claim, Fails::Before);
    bench.store.plan(Request::Claim, Fails::Before);
    let run = bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, |_| async { panic!("it ran unclaimed") }).await;
    assert_eq!(run.unwrap_err().code(), "STORE_UNAVAILABLE");
    assert!(bench.memory.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_acknowledgement_was_lost_is_stored_once() {
    let bench = Bench::new();
    bench.store.plan(Request::Finish, Fails::After);
    assert!(matches!(bench.run(5, |_| reply("paid")).await, Outcome::Done { .. }));
    assert_eq!(replayed(&bench.run(5, |_| reply("again")).await), Some((&b"paid"[..], 201)));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_the_store_does_not_take_is_tried_until_it_does() {
    let bench = Bench::new();
    for _ in 0..20 {
        bench.store.plan(Request::Finish, Fails::Before);
    }
    let begin = bench.engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap();
    let idem_core::Begin::Run(claim) = begin else { panic!("{begin:?}") };
    let mut early = Vec::new();
    let last = bench.engine.conduct(claim, |_| reply("paid"), |outcome| early.push(outcome)).await;
    assert!(matches!(early[..], [Outcome::NotStored { .. }]), "the client is told to wait: {early:?}");
    assert!(matches!(last, Outcome::Done { .. }), "{last:?}");
    assert_eq!(bench.record().status.name(), StatusName::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_owner_that_comes_back_late_writes_nothing() {
    let bench = Bench::new();
    let stalled = Arc::clone(&bench);
    let late = bench.run(5, |claim| async move {
        // Asleep past the lease; meanwhile a retry takes over and answers.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(matches!(stalled.run(5, |_| reply("B")).await, Outcome::Done { .. }));
        let announced = claim.call("charge", |key| stalled.clone().ask(key, Ok(1))).await;
        assert!(announced.is_err(), "a late owner announced a call");
        reply("A").await
    });
    assert_eq!(replayed(&late.await), Some((&b"B"[..], 201)), "the late owner answers from the record");
    assert_eq!(bench.asked(), 0);
    assert_eq!(bench.record().fence.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_without_a_rival_still_completes() {
    let bench = Bench::new();
    let outcome = bench.run(5, |_| async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        reply("slow").await
    });
    assert!(matches!(outcome.await, Outcome::Done { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_done_is_not_made_again() {
    let bench = Bench::new();
    let this = Arc::clone(&bench);
    let first = bench.run(5, |claim| async move {
        let _: u32 = claim.call("charge", |key| this.ask(key, Ok(7))).await?;
        Err(Failure::retryable("the ledger was away"))
    });
    assert!(matches!(first.await, Outcome::Failed { .. }));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let again = bench.pay("charge", Ok(8)).await;
    let Outcome::Done { reply, .. } = again else { panic!("{again:?}") };
    assert_eq!(reply.body, b"7", "the stored outcome");
    assert_eq!((bench.asked(), bench.record().attempts), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_second_effect_under_one_name_is_not_taken_for_the_first() {
    let bench = Bench::new();
    let this = Arc::clone(&bench);
    bench
        .run(5, |claim| async move {
            let first: u32 = claim.call("charge", |key| this.clone().ask(key, Ok(7))).await?;
            let second = claim.call("charge", |key| this.clone().ask(key, Ok(8))).await;
            assert!(second.is_err_and(|failure| failure.to_string().contains("was made in this attempt already")));
            reply(&first.to_string()).await
        })
        .await;
    assert_eq!(bench.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_where_the_provider_dedupes() {
    let bench = Bench::new();
    assert!(matches!(bench.pay("charge", Err(Fate::Unknown)).await, Outcome::Failed { .. }));
    assert_eq!(bench.record().status.name(), StatusName::FailedRetryable);
    assert!(bench.record().has_open_call());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(matches!(bench.pay("charge", Ok(7)).await, Outcome::Done { .. }));
    assert_eq!((bench.asked(), bench.record().has_open_call()), (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_where_the_provider_does_not_dedupe() {
    for call in ["book", "text"] {
        let bench = Bench::new();
        assert!(matches!(bench.pay(call, Err(Fate::Unknown)).await, Outcome::Unknown { .. }));
        tokio::time::sleep(DAY * 3).await;
        let again = bench.pay(call, Ok(7)).await;
        assert!(matches!(again, Outcome::Second(Answer::OutcomeUnknown { .. })), "{again:?}");
        assert_eq!(bench.asked(), 1, "{call} was made twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_not_asked_for_again_once_the_provider_may_have_forgotten() {
    let bench = Bench::new();
    bench.pay("charge", Err(Fate::Unknown)).await;
    tokio::time::sleep(DAY - Duration::from_secs(240)).await;
    let again = bench.pay("charge", Ok(7)).await;
    assert!(matches!(again, Outcome::Second(Answer::Unresolved { .. })), "{again:?}");
    assert_eq!(bench.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_left_is_withdrawn_and_made_later() {
    let bench = Bench::new();
    assert!(matches!(bench.pay("text", Err(Fate::NeverLeft)).await, Outcome::Failed { .. }));
    assert_eq!(bench.record().calls[0].state, CallState::Withdrawn);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(matches!(bench.pay("text", Ok(7)).await, Outcome::Done { .. }));
}

#[tokio::test(start_paused = true)]
async fn never_left_says_nothing_of_what_an_earlier_attempt_did() {
    let bench = Bench::new();
    bench.pay("charge", Err(Fate::Unknown)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.pay("charge", Err(Fate::NeverLeft)).await;
    assert_eq!(bench.record().calls[0].state, CallState::Open, "the first attempt's call may have happened");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_good_is_kept_and_replayed() {
    let bench = Bench::new();
    let first = bench.pay("charge", Err(Fate::Refused)).await;
    let Outcome::Done { reply, .. } = first else { panic!("{first:?}") };
    assert_eq!(reply.status, 422);
    assert_eq!(bench.record().status.name(), StatusName::FailedReplayable);
    assert_eq!(replayed(&bench.pay("charge", Ok(7)).await).map(|(_, status)| status), Some(422));
    assert_eq!(bench.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_call_does_not_leave() {
    let bench = Bench::new();
    assert!(matches!(bench.pay("unheard_of", Ok(7)).await, Outcome::Failed { .. }));
    assert_eq!(bench.asked(), 0);
    assert!(bench.record().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_announcement_is_not_stored_does_not_leave() {
    let bench = Bench::new();
    for _ in 0..4 {
        bench.store.plan(Request::Step, Fails::After);
    }
    assert!(matches!(bench.pay("text", Ok(7)).await, Outcome::Failed { .. }));
    assert_eq!(bench.asked(), 0);
    // The announcement was stored and its answers were lost. Nothing left, so the end takes it back.
    assert_eq!(bench.record().calls[0].state, CallState::Withdrawn);
}

#[tokio::test(start_paused = true)]
async fn a_panic_with_an_open_call_is_not_run_again_blindly() {
    let bench = Bench::new();
    let before = bench.run(5, |_| async { panic!("before any call") }).await;
    assert!(matches!(before, Outcome::Failed { .. }), "{before:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let during = bench.run(5, |claim| async move {
        let _: u32 = claim.call("text", |_| async { panic!("in the call") as Result<u32, ProviderFailed> }).await?;
        unreachable!()
    });
    assert!(matches!(during.await, Outcome::Unknown { .. }));
}

#[tokio::test(start_paused = true)]
async fn ids_are_the_same_in_every_attempt_and_differ_by_purpose() {
    let bench = Bench::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    for _ in 0..2 {
        let seen = Arc::clone(&seen);
        bench
            .run(5, |claim| async move {
                let call = claim.open("charge").await?;
                let mut seen = seen.lock().unwrap();
                seen.push((claim.derived_id("pay"), claim.derived_id("refund"), call.key().as_str().to_owned()));
                Err(Failure::from("again"))
            })
            .await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], seen[1]);
    let (pay, refund, charge) = &seen[0];
    assert_eq!((pay.len(), charge.len()), (30, 33));
    assert!(pay != refund && pay != charge);
    let other = Scope::new(Tenant::new("acm").unwrap(), "epay", key());
    assert_ne!(idem_core::resource_id("default", &other), pay["pay_".len()..], "borders of the parts count");
}

#[tokio::test(start_paused = true)]
async fn a_first_request_among_many_is_the_only_owner() {
    let bench = Bench::new();
    let work = |bench: Arc<Bench>| async move {
        bench
            .run(5, |_| async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                reply("one").await
            })
            .await
    };
    let racers: Vec<_> = (0..64).map(|_| tokio::spawn(work(Arc::clone(&bench)))).collect();
    let mut ran = 0;
    for racer in racers {
        match racer.await.unwrap() {
            Outcome::Done { .. } => ran += 1,
            Outcome::Second(Answer::InProgress { .. } | Answer::Replay { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ran, 1);
}

#[test]
fn a_set_up_that_would_break_a_promise_is_refused() {
    let builder = || Engine::builder(MemoryStore::new());
    let short = CallClass::Dedupes { retention: Duration::from_secs(329) };
    assert!(matches!(builder().call::<Pay>("charge", short).build(), Err(ConfigError::RetentionTooShort { .. })));
    let enough = CallClass::Dedupes { retention: Duration::from_secs(330) };
    assert!(builder().call::<Pay>("charge", enough).build().is_ok());
    let twice = builder().call::<Pay>("a", CallClass::Neither).call::<Pay>("a", CallClass::Neither).build();
    assert!(matches!(twice, Err(ConfigError::CallDeclaredTwice { .. })));
    assert!(matches!(builder().call::<Pay>("Ä", CallClass::Neither).build(), Err(ConfigError::CallName { .. })));
    let zero = Duration::ZERO;
    for (name, rules) in [
        ("lease", Rules { lease: zero, ..Rules::default() }),
        ("max_run", Rules { max_run: zero, ..Rules::default() }),
        ("window", Rules { window: zero, ..Rules::default() }),
        ("grace", Rules { grace: zero, ..Rules::default() }),
        ("ask_lease", Rules { ask_lease: zero, ..Rules::default() }),
        ("ask_parked", Rules { ask_parked: zero, ..Rules::default() }),
    ] {
        assert_eq!(builder().rules(rules.clone()).build().unwrap_err(), ConfigError::Zero(name));
        assert_eq!(builder().operation::<Pay>(rules).build().unwrap_err(), ConfigError::Zero(name));
    }
    let guessed = CallSpec::from(CallClass::Neither).key_form(KeyForm::text(12, "0123456789"));
    assert!(matches!(builder().call::<Pay>("book", guessed).build(), Err(ConfigError::KeyForm { .. })));
}

//! Records that no client comes back for, over the memory store on a clock that stands still unless somebody waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_core::decide::Finding;
use idem_core::store::Evidence;
use idem_core::{
    Answer, Begin, CallClass, CallError, CallRecord, CallState, Claim, Engine, Failure, Fate, IdempotencyKey,
    IdempotentCommand, MemoryStore, MemoryTx, Outcome, Reconciler, Record, Reply, Scope, Settled, Status, StatusName,
    Tenant, Transient,
};

use crate::support::clock::TokioClock;

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
    /// It cannot settle: by an error, or by a panic.
    breaks: Option<bool>,
}

impl Provider {
    fn new() -> Self {
        let says = Arc::new(Mutex::new(Ok(Finding::StillUnknown)));
        Self { says, asked: Arc::default(), settled: Arc::default(), resumes: false, hangs: false, breaks: None }
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
        self.says.lock().unwrap().clone().map_err(Transient::new)
    }

    async fn settle(
        &self,
        _: &mut MemoryTx,
        _: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn std::error::Error + Send + Sync>> {
        match self.breaks {
            Some(true) => panic!("on purpose"),
            Some(false) => return Err("no such column".into()),
            None => {}
        }
        self.settled.lock().unwrap().push(call.name.clone());
        if self.resumes {
            return Ok(Settled::Resume);
        }
        match call.outcome::<u32>() {
            Some(receipt) => Ok(Settled::Reply(Reply::status(201).body(receipt?.to_string()))),
            None => Ok(Settled::Reply(call.refusal().unwrap())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct AnswerLost;

impl CallError for AnswerLost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

struct Bench {
    memory: MemoryStore,
    engine: Engine,
    provider: Provider,
}

/// `charge` dedupes and can be asked, `mail` dedupes and cannot, `book` can only be asked, `text` neither.
fn bench(provider: Provider) -> Bench {
    let clock = Arc::new(TokioClock::new());
    let memory = MemoryStore::with_clock(clock.clone());
    let engine = Engine::builder(memory.clone())
        .clock(clock)
        .call::<Pay>("charge", CallClass::Dedupes { retention: 24 * HOUR })
        .call::<Pay>("mail", CallClass::Dedupes { retention: 24 * HOUR })
        .call::<Pay>("book", CallClass::QueryOnly { quiescence: HOUR })
        .call::<Pay>("text", CallClass::Neither)
        .reconciler::<Pay, _, _>("charge", memory.clone(), provider.clone())
        .reconciler::<Pay, _, _>("book", memory.clone(), provider.clone())
        .build()
        .unwrap();
    Bench { memory, engine, provider }
}

impl Bench {
    async fn claim(&self) -> Claim {
        match self.engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap() {
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

    /// The call was made, and its answer did not arrive; its question is due.
    async fn loses_the_answer_to(&self, call: &str) {
        let work = async |claim: Claim| {
            let _announced = claim.open(call).await?;
            Err(Failure::unknown("the connection was reset"))
        };
        let unknown = self.engine.run(&tenant(), &key(), &Pay { cents: 5 }, work).await.unwrap();
        let Outcome::Unknown { retry_after, .. } = unknown else { panic!("{unknown:?}") };
        tokio::time::sleep(retry_after).await;
    }

    /// The call was made, its answer did not arrive, and the work may run again.
    async fn fails_after(&self, call: &str) {
        let work = async |claim: Claim| {
            let _announced = claim.open(call).await?;
            Err(Failure::retryable("the connection was reset"))
        };
        let failed = self.engine.run(&tenant(), &key(), &Pay { cents: 5 }, work).await.unwrap();
        assert!(matches!(failed, Outcome::Failed { .. }), "{failed:?}");
        tokio::time::sleep(MINUTE).await;
    }

    async fn learns(&self, call: &str, state: CallState) {
        let record = self.record();
        let key = record.calls.iter().find(|known| known.name == call).unwrap().key.clone();
        let known = self.engine.evidence(&Evidence { key, source: "webhook".to_owned(), state }).await.unwrap();
        assert!(known);
    }

    /// The client comes back, and its work gets the call's outcome without making it.
    async fn goes_on(&self, call: &str) -> u32 {
        let receipt = Mutex::new(0);
        let work = async |claim: Claim| {
            let made = claim.call(call, |_| async { Err::<u32, _>(AnswerLost) }).await?;
            *receipt.lock().unwrap() = made;
            Ok(Reply::status(201))
        };
        let done = self.engine.run(&tenant(), &key(), &Pay { cents: 5 }, work).await.unwrap();
        assert!(matches!(done, Outcome::Done { .. }), "{done:?}");
        receipt.into_inner().unwrap()
    }

    /// What the same request gets, which does not run.
    async fn again(&self) -> Answer {
        match self.engine.run(&tenant(), &key(), &Pay { cents: 5 }, |_| async { unreachable!() }).await.unwrap() {
            Outcome::Second(answer) => answer,
            other => panic!("it ran again: {other:?}"),
        }
    }

    async fn unknown_until(&self) -> Duration {
        match self.again().await {
            Answer::OutcomeUnknown { retry_after } => retry_after,
            other => panic!("{other:?}"),
        }
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

/// No worker runs anywhere: the client that comes back asks itself.
#[tokio::test(start_paused = true)]
async fn a_request_that_comes_when_the_question_is_due_gets_the_answer_itself() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    bench.provider.says(Finding::applied(&7).unwrap());
    let another = bench.engine.run(&tenant(), &key(), &Pay { cents: 6 }, |_| async { unreachable!() }).await.unwrap();
    assert!(matches!(another, Outcome::Second(Answer::Mismatch(_))), "{another:?}");
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), 0, "not for another command");
    let again = bench.again().await;
    assert!(matches!(again, Answer::Replay { ref response, .. } if response.status == 201), "{again:?}");
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), 1);
    assert_eq!(*bench.provider.settled.lock().unwrap(), ["book"], "business rows are settled with the record");
}

#[tokio::test(start_paused = true)]
async fn a_request_asks_one_short_question_and_not_again_before_it_is_due() {
    let bench = bench(Provider { hangs: true, ..Provider::new() });
    bench.loses_the_answer_to("book").await;
    let (asked_at, retry_after) = (tokio::time::Instant::now(), bench.unknown_until().await);
    assert_eq!(asked_at.elapsed(), Duration::from_secs(2), "a provider that does not answer is not waited for");
    let waited = tokio::time::Instant::now();
    bench.unknown_until().await;
    assert_eq!((waited.elapsed(), bench.provider.asked.load(Ordering::Relaxed)), (Duration::ZERO, 1));
    tokio::time::sleep(retry_after).await;
    bench.unknown_until().await;
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), 2, "when it was told to come back, it asks");
}

#[tokio::test(start_paused = true)]
async fn a_request_asks_nobody_where_nobody_can_be_asked() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("text").await;
    let before = bench.record();
    bench.unknown_until().await;
    assert_eq!(bench.record(), before);
}

/// A provider forgets its keys: after that "I do not know it" is no proof, and a call that is made again is a second charge.
#[tokio::test(start_paused = true)]
async fn a_provider_that_may_have_forgotten_proves_nothing_by_not_knowing() {
    let bench = bench(Provider::new());
    bench.abandon(&["charge"]).await;
    bench.recover_for(25 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true), "a person was called before it forgets");
    bench.provider.says(Finding::NotApplied);
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true), "it is not made again");
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state().0, StatusName::Completed, "that it happened is proof at any time");
}

/// Two attempts have one key: what was said of the first says nothing of the second.
#[tokio::test(start_paused = true)]
async fn that_an_earlier_attempt_never_arrived_does_not_silence_the_provider() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    bench.learns("book", CallState::Withdrawn).await;
    bench.provider.says(Finding::applied(&7).unwrap());
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state().0, StatusName::Completed);
}

/// It was taken for one that never arrived; then the provider's webhook comes. The next attempt does not make it again.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_withdrawn_and_happened_after_all_is_not_made_again() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    bench.provider.says(Finding::NotApplied);
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::FailedRetryable, false));
    bench.learns("book", CallState::Applied(b"7".to_vec())).await;
    assert_eq!(bench.goes_on("book").await, 7);
}

#[tokio::test(start_paused = true)]
async fn an_open_call_that_is_known_to_have_happened_is_not_made_again() {
    let bench = bench(Provider::new());
    bench.fails_after("mail").await;
    bench.learns("mail", CallState::Applied(b"7".to_vec())).await;
    assert_eq!(bench.goes_on("mail").await, 7);
    assert_eq!(bench.record().calls[0].state, CallState::Applied(b"7".to_vec()));
}

/// Nobody can be asked about it, and yet somebody has said it: a worker settles what no client comes back for.
#[tokio::test(start_paused = true)]
async fn evidence_for_a_call_that_nobody_can_be_asked_about_is_heard() {
    let bench = bench(Provider::new());
    bench.fails_after("mail").await;
    bench.learns("mail", CallState::Applied(b"7".to_vec())).await;
    bench.recover_for(HOUR).await;
    assert_eq!(bench.record().calls[0].state, CallState::Applied(b"7".to_vec()), "{:?}", bench.record());
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_cannot_settle_or_panics_calls_a_person_in_the_end() {
    for panics in [false, true] {
        let bench = bench(Provider { breaks: Some(panics), ..Provider::new() });
        bench.provider.says(Finding::applied(&7).unwrap());
        bench.abandon(&["book"]).await;
        bench.recover_for(HOUR).await;
        assert_eq!(bench.state(), (StatusName::Unknown, false));
        bench.recover_for(80 * HOUR).await;
        assert_eq!(bench.state(), (StatusName::Unknown, true));
        assert!(bench.provider.asked.load(Ordering::Relaxed) < 1000, "later each time");
    }
}

/// What the provider says lets it run again: the very request that asked runs.
#[tokio::test(start_paused = true)]
async fn a_request_that_learns_that_nothing_happened_runs() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    bench.provider.says(Finding::NotApplied);
    // Its quiescence is over.
    tokio::time::sleep(2 * HOUR).await;
    let ran =
        bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, |_| async { Ok(Reply::status(201)) }).await.unwrap();
    assert!(matches!(ran, Outcome::Done { .. }), "{ran:?}");
    assert_eq!(bench.record().calls[0].state, CallState::Withdrawn);
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

/// In every state and class, and nobody ever comes back.
#[tokio::test(start_paused = true)]
async fn every_record_settles_without_clients() {
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
async fn a_webhook_settles_what_nobody_could_be_asked_about() {
    let bench = bench(Provider::new());
    bench.abandon(&["text"]).await;
    bench.recover_for(10 * MINUTE).await;
    assert_eq!(bench.state(), (StatusName::Unknown, true));
    let key = bench.record().calls[0].key.clone();
    let told = |key| Evidence { key, source: "webhook".to_owned(), state: CallState::Applied(b"7".to_vec()) };
    assert!(bench.engine.evidence(&told(key)).await.unwrap());
    bench.recover_for(10 * MINUTE).await;
    assert_eq!(bench.state(), (StatusName::FailedRetryable, false), "the next attempt goes on from there");
    assert_eq!(bench.record().calls[0].state, CallState::Applied(b"7".to_vec()));
    let stranger = idem_core::DownstreamKey::from_stored("text_of_somebody_else".to_owned());
    assert!(!bench.engine.evidence(&told(stranger)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn workers_ask_once_between_them() {
    let bench = Arc::new(bench(Provider::new()));
    bench.abandon(&["book"]).await;
    bench.recover_for(2 * MINUTE).await;
    tokio::time::sleep(HOUR).await;
    let before = bench.provider.asked.load(Ordering::Relaxed);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.engine.recover_once(10).await.unwrap() })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(bench.provider.asked.load(Ordering::Relaxed), before + 1);
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

//! What a request, a webhook and the next attempt learn of a call whose answer nobody saw.

use idem_core::store::Recovering;

use super::*;
use crate::support::faulty::{Fails, Request};

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct AnswerLost;

impl CallError for AnswerLost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

impl Bench {
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

/// The same where webhooks are all that is heard: the second attempt is a person's to find out about.
#[tokio::test(start_paused = true)]
async fn that_an_earlier_attempt_never_arrived_says_nothing_of_the_next_one() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("wire").await;
    bench.learns("wire", CallState::Withdrawn).await;
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state(), (StatusName::FailedRetryable, false), "of the only attempt it is believed");
    bench.loses_the_answer_to("wire").await;
    bench.recover_for(3 * HOUR).await;
    assert_eq!(bench.state().0, StatusName::Unknown);
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

/// Money moved, and the client was told that it was refused; or the other way round. Nobody would ever look.
#[tokio::test(start_paused = true)]
async fn evidence_that_contradicts_what_was_settled_is_told_of() {
    let happened = || Finding::applied(&7).unwrap();
    let refused = || Finding::rejected(&Reply::status(402));
    for (finding, told, contradicted) in [
        (refused(), CallState::Applied(b"7".to_vec()), Some("stands: Rejected, told: Applied")),
        (happened(), CallState::Rejected(b"402\n".to_vec()), Some("stands: Applied, told: Rejected")),
        (happened(), CallState::Applied(b"7".to_vec()), None),
        (refused(), CallState::Rejected(b"402\n".to_vec()), None),
        (happened(), CallState::Withdrawn, None),
        (refused(), CallState::Withdrawn, None),
    ] {
        let bench = bench(Provider::new());
        bench.loses_the_answer_to("book").await;
        bench.provider.says(finding);
        bench.recover_for(10 * MINUTE).await;
        let before = bench.record();
        bench.learns("book", told.clone()).await;
        assert_eq!(bench.heard("Contradicted"), usize::from(contradicted.is_some()), "{told:?}");
        assert_eq!(bench.heard(contradicted.unwrap_or("Contradicted")), usize::from(contradicted.is_some()));
        assert_eq!(bench.record(), before, "what was answered stays answered");
    }
    // It never arrived, they said.
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    bench.provider.says(Finding::NotApplied);
    bench.recover_for(3 * HOUR).await;
    bench.learns("book", CallState::Applied(b"7".to_vec())).await;
    assert_eq!(bench.heard("stands: NeverLeft, told: Applied"), 1);
}

/// First it failed, then it went through, and the news come in the other order, and one of them twice.
#[tokio::test(start_paused = true)]
async fn webhooks_that_come_in_any_order_contradict_nothing_that_the_last_word_says() {
    let bench = bench(Provider::new());
    bench.loses_the_answer_to("book").await;
    let (applied, rejected) = (CallState::Applied(b"7".to_vec()), CallState::Rejected(b"402\n".to_vec()));
    for told in [&applied, &rejected] {
        bench.learns("book", told.clone()).await;
    }
    bench.recover_for(10 * MINUTE).await;
    assert_eq!(bench.state().0, StatusName::Completed);
    for told in [&rejected, &applied] {
        bench.learns("book", told.clone()).await;
    }
    assert_eq!(bench.heard("Contradicted"), 0);
}

/// Work that gave its answer with a call left open: the answer says what became of the call.
#[tokio::test(start_paused = true)]
async fn an_answer_over_an_open_call_is_contradicted_too() {
    let applied = CallState::Applied(b"7".to_vec());
    let rejected = CallState::Rejected(b"402\n".to_vec());
    for (status, told, contradicted) in
        [(402, &applied, 1), (402, &rejected, 0), (201, &rejected, 1), (201, &applied, 0)]
    {
        let bench = bench(Provider::new());
        let work = async |claim: Claim| {
            let _announced = claim.open("book").await?;
            if status == 201 { Ok(Reply::status(201)) } else { Err(Failure::replayable(Reply::status(402))) }
        };
        let done = bench.engine.run(&tenant(), &key(), &Pay { cents: 5 }, work).await.unwrap();
        assert!(matches!(done, Outcome::Done { .. }), "{done:?}");
        bench.learns("book", told.clone()).await;
        assert_eq!(bench.heard("Contradicted"), contradicted, "{status} {told:?}");
    }
}

/// The webhook comes between the question and its answer: nobody who settles has read it.
#[tokio::test(start_paused = true)]
async fn evidence_that_comes_while_a_provider_is_asked_is_told_of() {
    let bench = bench(Provider { slow: true, ..Provider::new() });
    bench.loses_the_answer_to("book").await;
    bench.provider.says(Finding::rejected(&Reply::status(402)));
    let learn = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench.learns("book", CallState::Applied(b"7".to_vec())).await;
        assert_eq!(bench.heard("Contradicted"), 0, "it is not settled yet");
    };
    tokio::join!(bench.recover_for(MINUTE), learn);
    assert_eq!(bench.state().0, StatusName::FailedReplayable);
    assert_eq!(bench.heard("stands: Rejected, told: Applied"), 1);
}

/// A process that stood still while its record was settled by others wakes up with the provider's answer in its hand.
#[tokio::test(start_paused = true)]
async fn what_an_old_owner_learns_too_late_is_kept_as_evidence() {
    for fails in [0, 2] {
        let bench = bench(Provider::new());
        let claim = bench.claim().await;
        let work = async |claim: Claim| {
            let call = claim.open("book").await?;
            bench.recover_for(10 * MINUTE).await;
            assert_eq!(bench.state(), (StatusName::Unknown, false));
            (0..fails).for_each(|_| bench.store.plan(Request::Learn, Fails::Before));
            let receipt: u32 = call.run(|_| async { Ok::<_, AnswerLost>(7) }).await?;
            Ok(Reply::status(201).body(receipt.to_string()))
        };
        let late = bench.engine.conduct(claim, work, |_| ()).await;
        assert!(matches!(late, Outcome::Second(_)), "{late:?}");
        let learned = bench.store.learned(&bench.record().scope).await.unwrap();
        let [kept] = &learned[..] else { panic!("{learned:?}") };
        assert_eq!(kept.what.state, CallState::Applied(b"7".to_vec()));
        // The provider itself still says nothing.
        bench.recover_for(10 * MINUTE).await;
        assert_eq!((bench.state().0, bench.heard("Contradicted")), (StatusName::Completed, 0));
    }
}

/// The same where the work goes on: it finds out by its next write, which carried the outcome.
#[tokio::test(start_paused = true)]
async fn what_rode_on_a_write_that_was_refused_is_kept_as_evidence_once() {
    let bench = bench(Provider::new());
    let claim = bench.claim().await;
    let work = async |claim: Claim| {
        let call = claim.open("book").await?;
        let _: u32 = call.run(|_| async { Ok::<_, AnswerLost>(7) }).await?;
        bench.recover_for(10 * MINUTE).await;
        let refused = claim.checkpoint("booked", 1, &7).await.unwrap_err();
        Err(Failure::from(refused))
    };
    let late = bench.engine.conduct(claim, work, |_| ()).await;
    assert!(matches!(late, Outcome::Second(_)), "{late:?}");
    assert_eq!(bench.store.learned(&bench.record().scope).await.unwrap().len(), 1);
    bench.recover_for(10 * MINUTE).await;
    assert_eq!(bench.state().0, StatusName::Completed);
}

/// Somebody else may be making it by now, or asking about it.
#[tokio::test(start_paused = true)]
async fn a_call_is_not_sent_once_the_claim_is_known_to_be_lost() {
    let bench = bench(Provider::new());
    let (sent, said) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let claim = bench.claim().await;
    let work = async |claim: Claim| {
        let call = claim.open("charge").await?;
        bench.recover_for(10 * MINUTE).await;
        let refused = claim.checkpoint("reserved", 1, &7).await;
        assert!(refused.is_err() && claim.is_lost());
        let send = async |_| {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<u32, AnswerLost>(7)
        };
        let failure = call.run(send).await.expect_err("it is another's");
        *said.lock().unwrap() = failure.to_string();
        Err::<Reply, _>(failure)
    };
    let late = bench.engine.conduct(claim, work, |_| ()).await;
    assert!(matches!(late, Outcome::Second(_)), "{late:?}");
    assert_eq!(sent.into_inner(), 0);
    let said = said.into_inner().unwrap();
    assert!(said.contains("lost before the call `charge` was made"), "{said}");
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

//! What a person does about parked records, on every store.

mod verdicts;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::events::{Event, Observer};
use idem_core::operator::{Inspection, Resolution, ResolveError};
use idem_core::store::{Claiming, Evidence, Oldest, Seen, Tended};
use idem_core::{
    Answer, CallClass, CallError, CallState, Claim, DownstreamKey, Engine, Failure, Fate, IdempotencyKey,
    IdempotentCommand, Outcome, Reply, Rules, Scope, StatusName, Tenant,
};

pub(super) use self::verdicts::*;
use crate::support::faulty::FaultyStore;

/// Runs everything that a person does on one kind of store.
macro_rules! operating {
    ($open:expr) => {
        crate::stores::operating::operating!(@each $open;
            a_payment_that_was_made_is_completed_by_hand
            a_payment_that_was_refused_is_ended_by_hand
            the_next_attempt_goes_on_from_what_a_person_found_out
            what_never_happened_at_all_is_made_by_the_next_attempt
            a_verdict_that_does_not_fit_changes_nothing
            only_a_parked_record_is_decided_by_hand
            a_verdict_without_a_name_and_a_reason_is_refused
            a_record_asked_about_again_is_parked_again_where_nobody_can_be_asked
            of_many_records_each_gets_its_own_result
            a_verdict_is_not_written_once_the_record_has_changed
            a_verdict_on_many_closes_no_other_call_by_implication
            a_verdict_against_evidence_is_refused_unless_it_is_said_by_name
            evidence_that_comes_while_a_person_decides_is_told_of
            a_verdict_says_what_the_command_made
            ages_go_back_to_nothing_when_nothing_waits
            all_that_is_known_of_a_record_is_shown
        );
    };
    (@each $open:expr; $($act:ident)*) => {$(
        #[test]
        fn $act() {
            crate::stores::block_on(async {
                let (store, _guard) = $open.await;
                let store = crate::support::faulty::FaultyStore::over(store);
                crate::stores::operating::$act(crate::stores::operating::Desk::new(store)).await;
            });
        }
    )*};
}
pub(super) use operating;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct AnswerLost;

impl CallError for AnswerLost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

/// A store with an engine whose calls nobody can be asked about.
pub(super) struct Desk {
    store: FaultyStore,
    engine: Engine,
    told: Told,
}

/// Contradictions and ages, as an observer hears of them.
#[derive(Clone, Default)]
struct Told {
    contradicted: Arc<Mutex<Vec<String>>>,
    oldest: Arc<Mutex<Oldest>>,
}

impl Observer for Told {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Contradicted { call, stands, told, .. } => {
                self.contradicted.lock().unwrap().push(format!("{call} {stands:?} {told:?}"));
            }
            Event::Oldest(oldest) => *self.oldest.lock().unwrap() = *oldest,
            _ => {}
        }
    }
}

impl Desk {
    pub(super) fn new(store: FaultyStore) -> Self {
        let told = Told::default();
        let engine = Engine::builder(store.clone())
            .observer(told.clone())
            .rules(Rules { lease: Duration::from_millis(20), backoff: MINUTE, grace: MINUTE, ..Rules::default() })
            .call::<Pay>("charge", CallClass::Neither)
            .call::<Pay>("mail", CallClass::Neither)
            .build()
            .unwrap();
        Self { store, engine, told }
    }

    async fn run<W, F>(&self, key: &str, work: W) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        self.engine.run(&tenant(), &key.parse().unwrap(), &Pay { cents: 5 }, work).await.unwrap()
    }

    /// A record that was left with both calls open, and parked.
    async fn parked(&self, key: &str) -> Scope {
        let lost = self
            .run(key, |claim| async move {
                let _open = claim.open("charge").await?;
                claim.call("mail", lose).await?;
                unreachable!()
            })
            .await;
        assert!(matches!(lost, Outcome::Unknown { .. }), "{lost:?}");
        let scope = scope(key);
        let record = self.store.look(&scope).await.unwrap().unwrap().record;
        self.store.tend(&Seen::of(&record), &Tended::Parked { ask_in: Duration::ZERO }).await.unwrap();
        scope
    }

    /// What a provider's webhook says of a call.
    async fn learn(&self, scope: &Scope, call: &str, state: CallState) {
        let record = self.inspect(scope).await.record;
        let key = record.calls.iter().find(|known| known.name == call).unwrap().key.clone();
        assert!(self.engine.evidence(&Evidence { key, source: "webhook".to_owned(), state }).await.unwrap());
    }

    async fn inspect(&self, scope: &Scope) -> Inspection {
        self.engine.inspect(scope).await.unwrap().unwrap()
    }

    async fn refused(&self, scope: &Scope, resolution: &Resolution) -> ResolveError {
        let before = self.engine.inspect(scope).await.unwrap();
        let error = self.engine.resolve(scope, resolution, "ada", "why not").await.expect_err("it does not fit");
        let after = self.engine.inspect(scope).await.unwrap();
        assert_eq!(before.as_ref().map(|seen| &seen.record), after.as_ref().map(|seen| &seen.record));
        assert!(after.is_none_or(|seen| seen.audit.is_empty()), "a refused verdict leaves no row");
        error
    }
}

async fn lose(_: DownstreamKey) -> Result<u32, AnswerLost> {
    Err(AnswerLost)
}

fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

fn scope(key: &str) -> Scope {
    Scope::new(tenant(), "pay", key.parse::<IdempotencyKey>().unwrap())
}

fn replayed(outcome: Outcome) -> (u16, Vec<u8>) {
    match outcome {
        Outcome::Second(Answer::Replay { response, .. }) => (response.status, response.body.unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn nothing(_: Claim) -> Result<Reply, Failure> {
    panic!("it ran again")
}

pub(super) async fn a_payment_that_was_made_is_completed_by_hand(desk: Desk) {
    let scope = desk.parked("k").await;
    let before = desk.run("k", nothing).await;
    assert!(matches!(before, Outcome::Second(Answer::Unresolved { .. })), "{before:?}");
    let verdict = Resolution::completed(Reply::status(201).body("paid")).never_happened("mail");
    desk.engine.resolve(&scope, &verdict, "ada", "on the statement of 3 May").await.unwrap();
    assert_eq!(replayed(desk.run("k", nothing).await), (201, b"paid".to_vec()));
    let seen = desk.inspect(&scope).await;
    let states: Vec<_> = seen.record.calls.iter().map(|call| (call.name.as_str(), &call.state)).collect();
    assert_eq!(states, [("charge", &CallState::Applied(b"null".to_vec())), ("mail", &CallState::Withdrawn)]);
    let [row] = &seen.audit[..] else { panic!("{:?}", seen.audit) };
    let row = &row.what;
    let row = (row.action.as_str(), row.actor.as_str(), row.reason.as_str());
    let action = "resolve: completed 201, mail never happened; by implication: charge applied";
    assert_eq!(row, (action, "ada", "on the statement of 3 May"));
}

pub(super) async fn a_payment_that_was_refused_is_ended_by_hand(desk: Desk) {
    let scope = desk.parked("k").await;
    let verdict = Resolution::refused(Reply::status(402).body("declined"));
    desk.engine.resolve(&scope, &verdict, "ada", "the provider's support says so").await.unwrap();
    assert_eq!(replayed(desk.run("k", nothing).await), (402, b"declined".to_vec()));
    let seen = desk.inspect(&scope).await;
    assert_eq!(seen.record.status.name(), StatusName::FailedReplayable);
    assert_eq!(seen.record.calls[0].refusal().unwrap().status, 402);
}

pub(super) async fn the_next_attempt_goes_on_from_what_a_person_found_out(desk: Desk) {
    let scope = desk.parked("k").await;
    let verdict = Resolution::resume().applied("charge", &7).unwrap().never_happened("mail");
    desk.engine.resolve(&scope, &verdict, "ada", "charged, not mailed").await.unwrap();
    let ended = desk
        .run("k", |claim| async move {
            let receipt: u32 = claim.call("charge", lose).await?;
            let mail: u32 = claim.call("mail", |_| async { Ok::<_, AnswerLost>(8) }).await?;
            Ok(Reply::status(201).body(format!("{receipt} {mail}")))
        })
        .await;
    let Outcome::Done { reply, .. } = ended else { panic!("{ended:?}") };
    assert_eq!(reply.body, b"7 8");
}

pub(super) async fn what_never_happened_at_all_is_made_by_the_next_attempt(desk: Desk) {
    let scope = desk.parked("k").await;
    let verdict = Resolution::never_happened_at_all();
    desk.engine.resolve(&scope, &verdict, "ada", "the gateway was down all day").await.unwrap();
    let ended = desk
        .run("k", |claim| async move {
            let receipt: u32 = claim.call("charge", |_| async { Ok::<_, AnswerLost>(9) }).await?;
            Ok(Reply::status(201).body(receipt.to_string()))
        })
        .await;
    let Outcome::Done { reply, .. } = ended else { panic!("{ended:?}") };
    assert_eq!(reply.body, b"9");
}

pub(super) async fn a_verdict_that_does_not_fit_changes_nothing(desk: Desk) {
    let scope = desk.parked("k").await;
    for (verdict, code) in [
        (Resolution::resume().never_happened("charge"), "RESOLVE_CALL_LEFT_OPEN"),
        (Resolution::completed(Reply::status(201)).never_happened("refund"), "RESOLVE_CALL_NOT_OPEN"),
        (Resolution::completed(Reply::status(402)), "RESOLVE_STATUS"),
        (Resolution::completed(Reply::status(100)), "RESOLVE_STATUS"),
        (Resolution::refused(Reply::status(201)), "RESOLVE_STATUS"),
        (Resolution::refused(Reply::status(600)), "RESOLVE_STATUS"),
    ] {
        assert_eq!(desk.refused(&scope, &verdict).await.code(), code, "{verdict}");
    }
}

pub(super) async fn only_a_parked_record_is_decided_by_hand(desk: Desk) {
    let verdict = Resolution::completed(Reply::status(201));
    assert_eq!(desk.refused(&scope("nobody's"), &verdict).await.code(), "RESOLVE_NO_RECORD");
    let running = desk.run("running", |_| async {
        let running = desk.refused(&scope("running"), &verdict).await;
        assert!(matches!(running, ResolveError::NotParked(StatusName::InProgress)), "{running:?}");
        Ok(Reply::status(201))
    });
    assert!(matches!(running.await, Outcome::Done { .. }));
    let done = desk.refused(&scope("running"), &Resolution::never_happened_at_all()).await;
    assert!(matches!(done, ResolveError::NotParked(StatusName::Completed)), "{done:?}");
    let again = desk.engine.ask_again(&scope("running"), "ada", "to be sure").await.unwrap_err();
    assert_eq!(again.code(), "RESOLVE_NOT_PARKED");
    // Unknown, but not past its horizon: a worker is at it.
    desk.run("asked", |_| async { Err(Failure::unknown("no idea")) }).await;
    let asked = desk.refused(&scope("asked"), &Resolution::completed(Reply::status(201))).await;
    assert!(matches!(asked, ResolveError::NotParked(StatusName::Unknown)), "{asked:?}");
}

pub(super) async fn a_verdict_without_a_name_and_a_reason_is_refused(desk: Desk) {
    let scope = desk.parked("k").await;
    let verdict = Resolution::completed(Reply::status(201));
    for (actor, reason, missing) in [("", "it is so", "actor"), ("ada", "", "reason"), ("ada", " \n", "reason")] {
        for refused in [
            desk.engine.resolve(&scope, &verdict, actor, reason).await.unwrap_err(),
            desk.engine.ask_again(&scope, actor, reason).await.unwrap_err(),
        ] {
            assert!(matches!(refused, ResolveError::Unexplained(name) if name == missing), "{refused:?}");
        }
    }
    let seen = desk.inspect(&scope).await;
    assert!(seen.record.is_parked() && seen.audit.is_empty());
}

pub(super) async fn a_record_asked_about_again_is_parked_again_where_nobody_can_be_asked(desk: Desk) {
    let scope = desk.parked("k").await;
    desk.engine.ask_again(&scope, "ada", "perhaps they know by now").await.unwrap();
    let seen = desk.inspect(&scope).await;
    assert_eq!((seen.record.status.name(), seen.record.is_parked()), (StatusName::Unknown, false));
    assert_eq!(seen.audit[0].what.action, "ask again");
    assert_eq!(desk.engine.recover_once(10).await.unwrap().parked, 1);
    assert!(desk.inspect(&scope).await.record.is_parked());
}

pub(super) async fn of_many_records_each_gets_its_own_result(desk: Desk) {
    let scopes = [desk.parked("a").await, scope("nobody's"), desk.parked("b").await];
    let again = desk.engine.ask_again_all(scopes[..2].to_vec(), "ada", "the provider is back").await;
    let codes: Vec<_> = again.iter().map(|(of, result)| (of, result.as_ref().map_err(ResolveError::code))).collect();
    assert_eq!(codes, [(&scopes[0], Ok(&())), (&scopes[1], Err("RESOLVE_NO_RECORD"))]);
    let verdict = Resolution::completed(Reply::status(201)).applied("mail", &()).unwrap();
    let resolved = desk.engine.resolve_all(&scopes, "charge", &verdict, "ada", "all of 3 May went through").await;
    let codes: Vec<_> = resolved.iter().map(|(of, result)| (of, result.as_ref().map_err(ResolveError::code))).collect();
    // The first is not parked any more, a worker is at it.
    let expected = [Err("RESOLVE_NOT_PARKED"), Err("RESOLVE_NO_RECORD"), Ok(&())];
    assert_eq!(codes, scopes.iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(desk.inspect(&scopes[2]).await.record.status.name(), StatusName::Completed);
}

pub(super) async fn all_that_is_known_of_a_record_is_shown(desk: Desk) {
    assert!(desk.engine.inspect(&scope("nobody's")).await.unwrap().is_none());
    let scope = desk.parked("k").await;
    let key = desk.inspect(&scope).await.record.calls[0].key.clone();
    let told = Evidence { key, source: "webhook".to_owned(), state: CallState::Applied(b"7".to_vec()) };
    assert!(desk.engine.evidence(&told).await.unwrap());
    desk.engine.ask_again(&scope, "ada", "there is a webhook").await.unwrap();
    let seen = desk.inspect(&scope).await;
    assert_eq!(seen.evidence[0].what, told);
    assert!(seen.record.created_at <= seen.evidence[0].at && seen.evidence[0].at <= seen.audit[0].at);
    assert!(seen.audit[0].at <= seen.now);
    assert_eq!(seen.audit.len(), 1);
    assert!(seen.record.calls.iter().all(|call| call.is_open() && call.key.as_str().starts_with(&call.name)));
    assert!(seen.now >= seen.record.created_at);
}

//! What a verdict is bound to, what it may not imply, and what it is told of.

use idem_core::operator::Target;
use idem_core::store::Recovering;
use idem_core::{CallState, ResourceRef};

use super::*;
use crate::support::faulty::Request;

/// Another worker asked, another person decided: whoever saw the record before that has not seen it.
pub(in crate::stores) async fn a_verdict_is_not_written_once_the_record_has_changed(desk: Desk) {
    let scope = desk.parked("k").await;
    let seen = desk.inspect(&scope).await.record;
    let by_fence = Target::from(&scope).at_fence(seen.fence);
    desk.engine.ask_again(by_fence.clone(), "ada", "perhaps they know by now").await.unwrap();
    desk.engine.recover_once(10).await.unwrap();
    let again = desk.inspect(&scope).await;
    assert!(again.record.is_parked());
    let verdict = Resolution::completed(Reply::status(201));
    for target in [by_fence, Target::from(&seen), Target::from(&scope).at_revision(seen.revision)] {
        let refused = desk.engine.resolve(target.clone(), &verdict, "ada", "as I saw it").await.unwrap_err();
        assert_eq!(refused.code(), "RESOLVE_NOT_AS_SEEN", "{target:?}");
        let refused = desk.engine.ask_again(target, "ada", "as I saw it").await.unwrap_err();
        assert_eq!(refused.code(), "RESOLVE_NOT_AS_SEEN");
    }
    let after = desk.inspect(&scope).await;
    assert_eq!((&after.record, after.audit.len()), (&again.record, 1));
    desk.engine.resolve(&after.record, &verdict, "ada", "as it is").await.unwrap();
}

pub(in crate::stores) async fn a_verdict_on_many_closes_no_other_call_by_implication(desk: Desk) {
    for verdict in [
        Resolution::completed(Reply::status(201)),
        Resolution::refused(Reply::status(402)),
        Resolution::never_happened_at_all(),
    ] {
        let scope = desk.parked(&format!("k {verdict}").replace(' ', "-")).await;
        let resolved = desk.engine.resolve_all([&scope], "charge", &verdict, "ada", "all of 3 May").await;
        let Err(ResolveError::OtherCallOpen(call)) = &resolved[0].1 else { panic!("{resolved:?}") };
        assert_eq!(call, "mail");
        assert!(desk.inspect(&scope).await.record.is_parked());
        let named = verdict.never_happened("mail");
        let resolved = desk.engine.resolve_all([&scope], "charge", &named, "ada", "all of 3 May").await;
        assert!(resolved[0].1.is_ok(), "{resolved:?}");
    }
    let scope = desk.parked("another").await;
    let verdict = Resolution::completed(Reply::status(201));
    let resolved = desk.engine.resolve_all([&scope], "refund", &verdict, "ada", "all of 3 May").await;
    assert!(matches!(&resolved[0].1, Err(ResolveError::CallNotOpen(call)) if call == "refund"), "{resolved:?}");
}

/// The provider's webhook says that money moved: a slip of the hand does not make it move again.
pub(in crate::stores) async fn a_verdict_against_evidence_is_refused_unless_it_is_said_by_name(desk: Desk) {
    let happened = || CallState::Applied(b"7".to_vec());
    let refused = || CallState::Rejected(b"402\n".to_vec());
    for (number, (told, verdict, against)) in [
        (happened(), Resolution::never_happened_at_all(), "charge applied"),
        (happened(), Resolution::refused(Reply::status(402)), "charge applied"),
        (happened(), Resolution::resume().never_happened("charge").never_happened("mail"), "charge applied"),
        (refused(), Resolution::completed(Reply::status(201)), "charge rejected"),
    ]
    .into_iter()
    .enumerate()
    {
        let scope = desk.parked(&format!("k{number}")).await;
        desk.learn(&scope, "charge", told).await;
        // It is not the last word that counts.
        desk.learn(&scope, "charge", CallState::Withdrawn).await;
        let error = desk.refused(&scope, &verdict).await;
        assert_eq!(error.code(), "RESOLVE_AGAINST_EVIDENCE", "{verdict}");
        assert!(error.to_string().contains("`charge`") && error.to_string().contains("webhook"), "{error}");
        let error = desk.refused(&scope, &verdict.clone().against_evidence("mail")).await;
        assert_eq!(error.code(), "RESOLVE_AGAINST_EVIDENCE", "of another call");
        let verdict = verdict.against_evidence("charge");
        desk.engine.resolve(&scope, &verdict, "ada", "the webhook was of a test").await.unwrap();
        let action = desk.inspect(&scope).await.audit[0].what.action.clone();
        assert!(action.ends_with(&format!("against evidence: {against} by webhook")), "{action}");
    }
    // That it never arrived denies nothing, and what says the same does not.
    let scope = desk.parked("same").await;
    desk.learn(&scope, "charge", CallState::Withdrawn).await;
    desk.learn(&scope, "mail", happened()).await;
    desk.engine.resolve(&scope, &Resolution::completed(Reply::status(201)), "ada", "it is there").await.unwrap();
    let done = desk.inspect(&scope).await.audit[0].what.action.clone();
    assert_eq!(done, "resolve: completed 201; by implication: charge applied, mail applied");
}

/// The webhook is faster than the person's write, which has not heard of it.
pub(in crate::stores) async fn evidence_that_comes_while_a_person_decides_is_told_of(desk: Desk) {
    let scope = desk.parked("k").await;
    let hold = desk.store.hold(Request::Resolve);
    let verdict = Resolution::refused(Reply::status(402));
    let resolve = desk.engine.resolve(&scope, &verdict, "ada", "the provider's support says so");
    let learn = async {
        hold.arrived().await;
        desk.learn(&scope, "charge", CallState::Applied(b"7".to_vec())).await;
        assert_eq!(*desk.told.contradicted.lock().unwrap(), [""; 0], "nobody has decided yet");
        hold.let_go();
    };
    let (resolved, ()) = tokio::join!(resolve, learn);
    resolved.unwrap();
    assert_eq!(*desk.told.contradicted.lock().unwrap(), ["charge Rejected Applied"]);
}

pub(in crate::stores) async fn a_verdict_says_what_the_command_made(desk: Desk) {
    let scope = desk.parked("k").await;
    let verdict = Resolution::completed(Reply::status(201)).makes("payment", "pay_1");
    desk.engine.resolve(&scope, &verdict, "ada", "it is there").await.unwrap();
    let seen = desk.inspect(&scope).await;
    assert_eq!(seen.record.resource, Some(ResourceRef { kind: "payment".to_owned(), id: "pay_1".to_owned() }));
    assert!(seen.audit[0].what.action.contains("makes payment pay_1"), "{:?}", seen.audit);
}

/// An alert on the oldest goes out, and goes: the numbers are of all records, not of those that a round looked at.
pub(in crate::stores) async fn ages_go_back_to_nothing_when_nothing_waits(desk: Desk) {
    let oldest = async || {
        while desk.engine.recover_once(1).await.unwrap().more {}
        *desk.told.oldest.lock().unwrap()
    };
    assert_eq!(oldest().await, Oldest::default());
    let parked = desk.parked("parked").await;
    let unknown = desk.run("unknown", |_| async { Err(Failure::unknown("no idea")) }).await;
    assert!(matches!(unknown, Outcome::Unknown { .. }));
    let unknown = scope("unknown");
    let abandoned = desk.engine.begin(&tenant(), &"abandoned".parse().unwrap(), &Pay { cents: 5 }).await.unwrap();
    drop(abandoned);
    tokio::time::sleep(Duration::from_millis(50)).await;
    // The grace is not over, and its question is not due: no worker has anything to do.
    let mut ages = Oldest::default();
    for _ in 0..1000 {
        ages = oldest().await;
        if !ages.abandoned.is_zero() {
            break;
        }
        // PostgreSQL walks past a claim that is in progress once its grace is over; here it hears of it earlier.
        desk.store.due(Duration::ZERO, None, 1).await.unwrap();
    }
    assert!(!ages.abandoned.is_zero(), "{ages:?}");
    assert!(!ages.unknown.is_zero() && !ages.parked.is_zero(), "{ages:?}");
    let verdict = Resolution::completed(Reply::status(201));
    desk.engine.resolve(&parked, &verdict, "ada", "it is there").await.unwrap();
    let record = desk.inspect(&unknown).await.record;
    desk.store.tend(&Seen::of(&record), &Tended::Parked { ask_in: Duration::ZERO }).await.unwrap();
    desk.engine.resolve(&unknown, &verdict, "ada", "it is there").await.unwrap();
    let done = desk.run("abandoned", |_| async { Ok(Reply::status(201)) }).await;
    assert!(matches!(done, Outcome::Done { .. }), "{done:?}");
    assert_eq!(oldest().await, Oldest::default());
}

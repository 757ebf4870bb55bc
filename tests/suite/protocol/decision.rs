//! The decision table, over all records that it can meet.

use std::time::{Duration, SystemTime};

use idem_core::decide::{Becomes, Decision, Ended, becomes, decide};
use idem_core::{
    CallClass, CallRecord, CallState, CommandHash, DownstreamKey, Fence, Finished, OwnerToken, Record, Revision, Rules,
    Scope, Status, StoredResponse, Tenant, Verdict,
};
use proptest::prelude::*;

pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 500_000 * HOUR
}

pub(super) fn record(status: Status, calls: Vec<CallRecord>) -> Record {
    Record {
        scope: Scope::new(Tenant::new("t").unwrap(), "pay", "k".parse().unwrap()),
        hash: CommandHash::from_parts(1, 1, [7; 32]).unwrap(),
        fence: Fence::FIRST,
        owner: OwnerToken::random(),
        revision: Revision::FIRST,
        attempts: 1,
        created_at: now() - HOUR,
        ask_attempts: 0,
        status,
        calls,
        resource: None,
        checkpoint: None,
    }
}

pub(super) fn call(class: CallClass, state: CallState, opened: Duration) -> CallRecord {
    let key = DownstreamKey::from_stored("charge_x".to_owned());
    CallRecord { name: "charge".to_owned(), class, key, state, opened_at: now() - opened }
}

fn finished(body: Option<Vec<u8>>, expires_at: SystemTime) -> Finished {
    let response = StoredResponse { status: 201, headers: Vec::new(), body };
    Finished { response, at: now() - HOUR, expires_at, body_until: expires_at, purge_at: expires_at + HOUR }
}

fn any_time() -> impl Strategy<Value = SystemTime> {
    (-100_000i64..100_000).prop_map(|seconds| {
        let span = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { now() - span } else { now() + span }
    })
}

pub(super) fn any_status() -> impl Strategy<Value = Status> {
    let body = prop_oneof![Just(None), Just(Some(Vec::new())), Just(Some(b"{}".to_vec()))];
    let finished = (body, any_time()).prop_map(|(body, expires_at)| finished(body, expires_at)).boxed();
    prop_oneof![
        any_time().prop_map(|locked_until| Status::InProgress { locked_until }),
        finished.clone().prop_map(Status::Completed),
        finished.prop_map(Status::FailedReplayable),
        (any_time(), any_time(), proptest::option::of(any_time())).prop_map(
            |(next_attempt_at, expires_at, parked_at)| {
                Status::FailedRetryable { next_attempt_at, expires_at, purge_at: expires_at + HOUR, parked_at }
            }
        ),
        (any_time(), proptest::option::of(any_time())).prop_map(|(next_ask_at, parked_at)| Status::Unknown {
            next_ask_at,
            locked_until: None,
            parked_at
        }),
        any_time().prop_map(|purge_at| Status::Expired { purge_at }),
    ]
}

pub(super) fn any_call() -> impl Strategy<Value = CallRecord> {
    let class = prop_oneof![
        (600u64..200_000).prop_map(|s| CallClass::Dedupes { retention: Duration::from_secs(s) }),
        Just(CallClass::QueryOnly { quiescence: HOUR }),
        Just(CallClass::Neither),
    ];
    let state = prop_oneof![
        3 => Just(CallState::Open),
        1 => Just(CallState::Applied(b"1".to_vec())),
        1 => Just(CallState::Rejected(b"422\n".to_vec())),
        1 => Just(CallState::Withdrawn),
    ];
    (class, state, 0u64..200_000).prop_map(|(class, state, ago)| call(class, state, Duration::from_secs(ago)))
}

pub(super) fn any_record() -> impl Strategy<Value = Record> {
    (any_status(), proptest::collection::vec(any_call(), 0..3)).prop_map(|(status, calls)| record(status, calls))
}

proptest! {
    /// Another command gets no answer of the first, and starts nothing, whatever the record's state.
    #[test]
    fn another_command_is_a_mismatch_in_every_state(record in any_record()) {
        let decision = decide(&record, Verdict::Different, now(), &Rules::default());
        prop_assert!(matches!(decision, Decision::Mismatch { .. }), "{decision:?}");
        if decision == (Decision::Mismatch { safe_new_key: true }) {
            prop_assert!(matches!(record.status, Status::FailedReplayable(_)));
            prop_assert!(!record.has_open_call());
        }
    }

    /// A record that this build cannot judge is neither replayed nor run nor called a mismatch.
    #[test]
    fn an_unknown_contract_is_never_judged(record in any_record()) {
        let newer = decide(&record, Verdict::Newer, now(), &Rules::default());
        prop_assert!(matches!(newer, Decision::ContractUnknown { .. }), "{newer:?}");
        prop_assert_eq!(decide(&record, Verdict::Retired, now(), &Rules::default()), Decision::ContractRetired);
    }

    /// Nobody takes over from a live lease, over a final answer, or where an open call must not be repeated.
    #[test]
    fn a_take_over_repeats_nothing_that_must_not_be_repeated(record in any_record()) {
        let rules = Rules::default();
        if decide(&record, Verdict::Same, now(), &rules) == Decision::TakeOver {
            match &record.status {
                Status::InProgress { locked_until } => prop_assert!(*locked_until <= now()),
                Status::FailedRetryable { next_attempt_at, parked_at, .. } => {
                    prop_assert!(*next_attempt_at <= now());
                    prop_assert!(parked_at.is_none());
                }
                other => prop_assert!(false, "took over {other:?}"),
            }
            for call in record.calls.iter().filter(|call| call.is_open()) {
                match call.class {
                    CallClass::Dedupes { retention } => prop_assert!(call.opened_at + retention > now() + rules.margin()),
                    other => prop_assert!(false, "would repeat {other:?}"),
                }
            }
        }
    }

    /// What is in progress past its lease does not stay there: it is taken over or given up, never waited for.
    #[test]
    fn an_overrun_lease_is_acted_upon(calls in proptest::collection::vec(any_call(), 0..3)) {
        let record = record(Status::InProgress { locked_until: now() }, calls);
        let decision = decide(&record, Verdict::Same, now(), &Rules::default());
        prop_assert!(matches!(decision, Decision::TakeOver | Decision::Strand), "{decision:?}");
    }

    /// Every wait that a client is told is at least a second where it is told to poll, and ends.
    #[test]
    fn waits_are_bounded(record in any_record()) {
        if let Decision::InProgress { retry_after } = decide(&record, Verdict::Same, now(), &Rules::default()) {
            prop_assert!(retry_after >= Duration::from_secs(1) && retry_after <= Duration::from_secs(10));
        }
    }

    /// An attempt ends retryable only where it may be repeated, unless the work says otherwise of a final answer.
    #[test]
    fn an_end_with_a_call_that_must_not_be_repeated_is_unknown(
        status in 100u16..600,
        calls in proptest::collection::vec(any_call(), 0..3),
    ) {
        let rules = Rules::default();
        let may = idem_core::rerunnable(&calls, now(), rules.margin());
        for ended in [Ended::Replied(status), Ended::Retryable, Ended::Refused, Ended::Broke] {
            let end = becomes(ended, &calls, now(), &rules);
            if end == Becomes::FailedRetryable {
                prop_assert!(may);
            }
            if !may && !matches!(ended, Ended::Replied(200..=399)) {
                prop_assert_eq!(end, Becomes::Unknown);
            }
        }
    }
}

#[test]
fn the_wait_for_one_who_runs_grows_with_its_age_and_ends_with_its_lease() {
    let seconds = Duration::from_secs;
    // age, what is left of the lease, the wait
    for (age, left, wait) in [
        (0, 30, 1),
        (8, 30, 2),
        (40, 30, 10),
        (400, 30, 10),
        // By then somebody may take over.
        (400, 3, 3),
        (8, 1, 1),
    ] {
        let status = Status::InProgress { locked_until: now() + seconds(left) };
        let record = Record { created_at: now() - seconds(age), ..record(status, Vec::new()) };
        let decision = decide(&record, Verdict::Same, now(), &Rules::default());
        assert_eq!(
            decision,
            Decision::InProgress { retry_after: seconds(wait) },
            "{age} s old, {left} s of lease left"
        );
    }
}

#[test]
fn the_wait_for_an_unknown_outcome_is_that_for_the_next_question() {
    let asker = Some(now() + Duration::from_secs(30));
    for (ahead, locked_until, wait) in [(7, None, 7), (900, None, 900), (0, asker, 1), (7, asker, 7)] {
        let next_ask_at = now() + Duration::from_secs(ahead);
        let unknown = record(Status::Unknown { next_ask_at, locked_until, parked_at: None }, Vec::new());
        let decision = decide(&unknown, Verdict::Same, now(), &Rules::default());
        assert_eq!(decision, Decision::OutcomeUnknown { retry_after: Duration::from_secs(wait) });
    }
}

#[test]
fn a_request_asks_when_the_question_is_due_and_nobody_else_asks() {
    for locked_until in [None, Some(now())] {
        let unknown = record(Status::Unknown { next_ask_at: now(), locked_until, parked_at: None }, Vec::new());
        assert_eq!(decide(&unknown, Verdict::Same, now(), &Rules::default()), Decision::Ask);
        let parked = record(Status::Unknown { next_ask_at: now(), locked_until, parked_at: Some(now()) }, Vec::new());
        assert_eq!(decide(&parked, Verdict::Same, now(), &Rules::default()), Decision::Unresolved);
        // Another command gets nothing done.
        let different = decide(&unknown, Verdict::Different, now(), &Rules::default());
        assert_eq!(different, Decision::Mismatch { safe_new_key: false });
    }
}

#[test]
fn a_body_whose_time_is_over_is_not_replayed_whether_swept_or_not() {
    let finished = Finished { body_until: now(), ..finished(Some(Vec::new()), now() + HOUR) };
    let record = record(Status::Completed(finished), Vec::new());
    assert_eq!(decide(&record, Verdict::Same, now(), &Rules::default()), Decision::NotKept);
}

#[test]
fn a_body_too_large_to_keep_is_not_replayed_and_not_run_again() {
    let record = record(Status::Completed(finished(None, now() + HOUR)), Vec::new());
    assert_eq!(decide(&record, Verdict::Same, now(), &Rules::default()), Decision::NotKept);
}

#[test]
fn the_window_is_judged_whether_swept_or_not() {
    let rules = Rules::default();
    for status in [
        Status::Completed(finished(Some(Vec::new()), now())),
        Status::FailedReplayable(finished(Some(Vec::new()), now())),
        Status::FailedRetryable { next_attempt_at: now(), expires_at: now(), purge_at: now(), parked_at: None },
        Status::Expired { purge_at: now() },
    ] {
        assert_eq!(decide(&record(status, Vec::new()), Verdict::Same, now(), &rules), Decision::Expired);
    }
}

#[test]
fn a_call_left_open_outlives_the_window() {
    let open = call(CallClass::Dedupes { retention: 48 * HOUR }, CallState::Open, 24 * HOUR);
    let (then, now) = (now() - HOUR, now());
    let status = Status::FailedRetryable { next_attempt_at: now, expires_at: then, purge_at: now, parked_at: None };
    assert_eq!(decide(&record(status, vec![open]), Verdict::Same, now, &Rules::default()), Decision::TakeOver);
}

#[test]
fn what_an_answer_becomes() {
    let rules = Rules::default();
    let dedupes = call(CallClass::Dedupes { retention: 24 * HOUR }, CallState::Open, Duration::ZERO);
    let neither = call(CallClass::Neither, CallState::Open, Duration::ZERO);
    let done = call(CallClass::Neither, CallState::Applied(Vec::new()), Duration::ZERO);
    use Becomes::{Completed, FailedReplayable, FailedRetryable, Unknown};
    // ended, without an open call, with one that dedupes, with one that neither dedupes nor can be asked
    for (ended, without, repeatable, unrepeatable) in [
        (Ended::Replied(200), Completed, Completed, Completed),
        (Ended::Replied(201), Completed, Completed, Completed),
        (Ended::Replied(303), Completed, Completed, Completed),
        (Ended::Replied(400), FailedReplayable, FailedRetryable, Unknown),
        (Ended::Replied(402), FailedReplayable, FailedRetryable, Unknown),
        (Ended::Replied(409), FailedReplayable, FailedRetryable, Unknown),
        (Ended::Replied(422), FailedReplayable, FailedRetryable, Unknown),
        (Ended::Replied(401), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(403), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(407), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(408), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(425), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(429), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(500), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replied(503), FailedRetryable, FailedRetryable, Unknown),
        (Ended::Replayable, FailedReplayable, FailedReplayable, FailedReplayable),
        (Ended::Retryable, FailedRetryable, FailedRetryable, Unknown),
        (Ended::Unknown, Unknown, Unknown, Unknown),
        (Ended::Refused, FailedReplayable, FailedRetryable, Unknown),
        (Ended::Broke, FailedRetryable, FailedRetryable, Unknown),
    ] {
        assert_eq!(becomes(ended, std::slice::from_ref(&done), now(), &rules), without, "{ended:?}, no call open");
        assert_eq!(becomes(ended, std::slice::from_ref(&dedupes), now(), &rules), repeatable, "{ended:?}, dedupes");
        assert_eq!(becomes(ended, std::slice::from_ref(&neither), now(), &rules), unrepeatable, "{ended:?}, neither");
    }
}

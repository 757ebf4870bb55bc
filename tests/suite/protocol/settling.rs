//! The tables that workers go by bring every record to an end, or to a person. That the engine goes by them, from whatever
//! an attempt leaves, is tested in `endings`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use idem_core::decide::{Asked, Finding, Tend, asked, tend};
use idem_core::store::{Answered, AnsweredEnd, ClosedCall, End, Seen, TakeOver, Tended};
use idem_core::{CallClass, OwnerToken, Record, Rules, Status, StatusName, transition};
use proptest::prelude::*;

use super::decision::{HOUR, any_call, any_record, call, now, record};

/// A worker without a network: it does what the table says, and gets from providers what it is told.
struct Worker<'a> {
    rules: Rules,
    askable: &'a dyn Fn(&str) -> bool,
    says: &'a dyn Fn(SystemTime) -> Finding,
    trail: Vec<Tend>,
}

impl Worker<'_> {
    fn look(&mut self, record: &mut Record, now: SystemTime) {
        let step = tend(record, self.askable, now, &self.rules);
        self.trail.push(step);
        let seen = Seen::of(record);
        let ask_in = self.rules.backoff;
        let did = match step {
            Tend::Leave => true,
            Tend::Release => {
                let to = Tended::Released { retry_in: ask_in, keep: self.rules.keep() };
                transition::tend(record, &seen, &to, now)
            }
            Tend::Strand => transition::tend(record, &seen, &Tended::Stranded { ask_in }, now),
            Tend::Park => transition::tend(record, &seen, &Tended::Parked { ask_in: self.rules.ask_parked }, now),
            Tend::Ask => {
                let take = TakeOver { seen, owner: OwnerToken::random(), lease: self.rules.ask_lease };
                transition::take_to_ask(record, &take, now) && self.ask(record, now)
            }
        };
        assert!(did, "the table said {step:?}, and the transition refused it: {record:?}");
    }

    fn ask(&self, record: &mut Record, now: SystemTime) -> bool {
        let mut closed = Vec::new();
        let mut wait = self.rules.ask_cap;
        let mut give_up = false;
        for call in record.open_calls().filter(|call| (self.askable)(&call.name)) {
            match asked(call, (self.says)(now), record.ask_attempts, now, &self.rules) {
                Asked::Closed(state) => closed.push(ClosedCall { name: call.name.clone(), state }),
                Asked::Again(span) => wait = wait.min(span),
                Asked::GiveUp => give_up = true,
            }
        }
        let end = if closed.is_empty() {
            let ask_in = if give_up { self.rules.ask_parked } else { wait };
            AnsweredEnd::StillUnknown { ask_in, park: give_up }
        } else {
            AnsweredEnd::Ended(End::FailedRetryable { retry_in: wait, keep: self.rules.keep() })
        };
        transition::answer(record, &record.ownership(), &Answered { closed, resource: None, end }, now)
    }
}

/// What the protocol calls settled.
fn settled(record: &Record) -> bool {
    match record.status {
        Status::Completed(_) | Status::FailedReplayable(_) | Status::Expired { .. } => true,
        Status::FailedRetryable { parked_at, .. } => parked_at.is_some() || !record.has_open_call(),
        Status::Unknown { parked_at, .. } => parked_at.is_some(),
        Status::InProgress { .. } => false,
    }
}

proptest! {
    #[test]
    fn the_tables_bring_every_record_to_an_end(
        mut record in any_record(),
        can_ask: bool,
        answers: bool,
    ) {
        let mut worker = Worker {
            rules: Rules::default(),
            askable: &|_| can_ask,
            says: &|_| if answers { Finding::NotApplied } else { Finding::StillUnknown },
            trail: Vec::new(),
        };
        let mut at = now();
        // Longer than the latest lease of the records, the longest horizon and the longest retention.
        for _ in 0..(24 * 9 * 4) {
            worker.look(&mut record, at);
            at += Duration::from_secs(15 * 60);
        }
        prop_assert!(settled(&record), "after {:?}: {record:?}", worker.trail);
    }

    /// "Not applied" is believed only where nothing can arrive late.
    #[test]
    fn a_call_is_withdrawn_only_where_that_is_proof(call in any_call()) {
        let withdrawn = asked(&call, Finding::NotApplied, 1, now(), &Rules::default())
            == Asked::Closed(idem_core::CallState::Withdrawn);
        let proof = match call.class {
            // It has not forgotten: a late arrival is the same effect as the next try.
            CallClass::Dedupes { .. } => call.may_repeat(now(), Rules::default().margin()),
            CallClass::QueryOnly { quiescence } => call.opened_at + quiescence <= now(),
            CallClass::Neither => false,
        };
        prop_assert_eq!(withdrawn, proof);
    }

    /// Cleaning takes settled records whose time is over, and nothing else.
    #[test]
    fn a_sweep_never_takes_what_is_not_over(mut record in any_record(), purge_tombstones: bool) {
        let before = record.clone();
        let cleaned = transition::sweep(&mut record, purge_tombstones, now());
        match (&before.status, cleaned) {
            (_, transition::Cleaned::Kept) => prop_assert_eq!(&record, &before),
            (Status::InProgress { .. } | Status::Unknown { .. }, _) => prop_assert!(false, "swept {before:?}"),
            (Status::FailedRetryable { expires_at, .. }, _) => {
                prop_assert!(*expires_at <= now() && !before.has_open_call());
            }
            (Status::Completed(finished) | Status::FailedReplayable(finished), transition::Cleaned::Body) => {
                prop_assert!(finished.body_until <= now());
            }
            (Status::Completed(finished) | Status::FailedReplayable(finished), _) => {
                prop_assert!(finished.expires_at <= now());
            }
            (Status::Expired { purge_at }, _) => {
                prop_assert!(*purge_at <= now() && (before.calls.is_empty() || purge_tombstones));
            }
        }
        if cleaned == transition::Cleaned::Expired {
            prop_assert_eq!(record.hash, before.hash, "what the key meant is still known");
            prop_assert_eq!(record.status.name(), StatusName::Expired);
        }
    }
}

#[test]
fn the_table_of_the_worker() {
    let rules = Rules::default();
    let hour_ago = || now() - HOUR;
    let dedupes = || call(CallClass::Dedupes { retention: 24 * HOUR }, idem_core::CallState::Open, HOUR);
    let query = || call(CallClass::QueryOnly { quiescence: HOUR }, idem_core::CallState::Open, HOUR);
    let overrun = || Status::InProgress { locked_until: hour_ago() };
    let retry = || Status::FailedRetryable {
        next_attempt_at: hour_ago(),
        expires_at: now() + HOUR,
        purge_at: now() + HOUR,
        parked_at: None,
    };
    let unknown = |parked_at| Status::Unknown { next_ask_at: hour_ago(), locked_until: None, parked_at };
    let asked = Status::Unknown { next_ask_at: hour_ago(), locked_until: Some(now() + HOUR), parked_at: None };
    for (status, calls, askable, expected) in [
        (Status::InProgress { locked_until: now() - Duration::from_secs(59) }, vec![], true, Tend::Leave),
        (overrun(), vec![], true, Tend::Release),
        (overrun(), vec![dedupes()], true, Tend::Strand),
        (overrun(), vec![dedupes()], false, Tend::Release),
        (overrun(), vec![query()], true, Tend::Strand),
        (overrun(), vec![query()], false, Tend::Park),
        (retry(), vec![], true, Tend::Leave),
        (retry(), vec![dedupes()], true, Tend::Strand),
        (retry(), vec![dedupes()], false, Tend::Leave),
        (retry(), vec![query()], false, Tend::Park),
        (unknown(None), vec![query()], true, Tend::Ask),
        (unknown(None), vec![query()], false, Tend::Park),
        (unknown(None), vec![], true, Tend::Park),
        (unknown(Some(hour_ago())), vec![query()], true, Tend::Ask),
        (unknown(Some(hour_ago())), vec![query()], false, Tend::Leave),
        (asked, vec![query()], true, Tend::Leave),
    ] {
        let record = record(status, calls);
        let names: BTreeSet<_> = record.calls.iter().map(|call| call.name.clone()).collect();
        let step = tend(&record, &|name| askable && names.contains(name), now(), &rules);
        assert_eq!(step, expected, "{record:?}, askable: {askable}");
    }
}

//! Asking what became of the calls of one record: by a worker, or by a request that comes when the question is due.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::{Either, select};

use crate::calls::{CallRecord, CallState};
use crate::decide::{Asked, Concluded, Finding, asked, concluded, weightiest};
use crate::engine::Engine;
use crate::events::{Event, RecoveryStep};
use crate::reconciler::{NotSettled, Settles, Settling, Transient};
use crate::record::{OwnerToken, Record};
use crate::rules::Rules;
use crate::store::{
    Answered, AnsweredEnd, ClosedCall, Dated, End, Evidence, Fenced, Guarded, Seen, StoreError, TakeOver,
};

/// What a question came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// Somebody else asks.
    NotTaken,
    /// The record is settled, or may run again.
    Settled,
    /// A person was called.
    Parked,
    /// It is not known yet.
    Unsettled,
}

impl Engine {
    /// One question of a request that found its record due: who waits for an answer gets it without waiting for a
    /// worker. False where nobody can be asked.
    pub(super) async fn ask_for_a_request(&self, record: &Record, rules: &Rules) -> Result<bool, StoreError> {
        let learned = self.store().learned(&record.scope).await?;
        if !record.open_calls().any(|call| self.is_askable(record, &call.name, &learned)) {
            return Ok(false);
        }
        self.ask(record.clone(), &learned, rules, PATIENCE.min(rules.ask_lease / 2)).await?;
        Ok(true)
    }

    /// T10 to T13: what became of the record's open calls. Their providers have `bound` to answer, all together, and the
    /// application has as long to settle it.
    pub(crate) async fn ask(
        &self,
        record: Record,
        learned: &[Dated<Evidence>],
        rules: &Rules,
        bound: Duration,
    ) -> Result<Came, StoreError> {
        let scope = record.scope.clone();
        let came = self.asked(record, learned, rules, bound).await?;
        if came == Came::Settled {
            // What came while the providers were asked was not read.
            self.inner.look_for_contradictions(&scope).await;
        }
        Ok(came)
    }

    async fn asked(
        &self,
        record: Record,
        learned: &[Dated<Evidence>],
        rules: &Rules,
        bound: Duration,
    ) -> Result<Came, StoreError> {
        let take = TakeOver { seen: Seen::of(&record), owner: OwnerToken::random(), lease: rules.ask_lease };
        let Guarded::Written { now } = self.store().take_to_ask(&take).await? else { return Ok(Came::NotTaken) };
        let open = record.open_calls().count();
        let each = bound / u32::try_from(open.max(1)).unwrap_or(u32::MAX);
        let mut record =
            Record { fence: record.fence.next(), owner: take.owner, ask_attempts: record.ask_attempts + 1, ..record };
        let owner = record.ownership();
        let mut closed: Vec<ClosedCall> = Vec::new();
        let mut again = rules.ask_cap;
        let mut give_up = false;
        for at in 0..record.calls.len() {
            if !record.calls[at].is_open() {
                continue;
            }
            let finding = self.find(&record, &record.calls[at], learned, each).await;
            let call = &mut record.calls[at];
            match asked(call, finding, record.ask_attempts, now, rules) {
                Asked::Closed(state) => {
                    let state = state.kept(self.kept_headers());
                    call.state = state.clone();
                    closed.push(ClosedCall { name: call.name.clone(), state });
                }
                Asked::Again(span) => again = again.min(span),
                Asked::GiveUp => give_up = true,
            }
        }
        let still_unknown = |closed: Vec<ClosedCall>| Answered {
            closed,
            resource: None,
            end: AnsweredEnd::StillUnknown {
                ask_in: if give_up { rules.ask_parked } else { again.mul_f64(self.clock().fraction()) },
                park: give_up,
            },
        };
        let resume = |closed: Vec<ClosedCall>| Answered {
            closed,
            resource: None,
            end: AnsweredEnd::Ended(End::FailedRetryable { retry_in: Duration::ZERO, keep: rules.keep() }),
        };
        let known = closed.iter().any(|call| call.state != CallState::Withdrawn);
        let names: Vec<_> = closed.iter().map(|call| call.name.clone()).collect();
        let answered = match concluded(&record.calls, names.iter().map(String::as_str), now, rules) {
            Concluded::StillUnknown => still_unknown(closed),
            Concluded::Resume => resume(closed),
            Concluded::Known(call) => match self.reconciler_of(record.scope.operation(), &call.name) {
                Some(settles) => {
                    let kept_headers = self.kept_headers();
                    let settling = Settling { owner: &owner, record: &record, call, closed, rules, kept_headers };
                    return self.settle(&**settles, settling, now, bound).await;
                }
                None => resume(closed),
            },
        };
        let step = match answered.end {
            AnsweredEnd::Ended(_) if known => RecoveryStep::Applied,
            AnsweredEnd::Ended(_) => RecoveryStep::NotApplied,
            AnsweredEnd::StillUnknown { .. } => RecoveryStep::StillUnknown,
        };
        let settles = matches!(answered.end, AnsweredEnd::Ended(_));
        let written = self.store().answer(&owner, &answered).await?;
        if let Fenced::Written { .. } = written {
            self.observe(&Event::Recovered { operation: record.scope.operation(), step });
        }
        Ok(match written {
            Fenced::Written { .. } if settles => Came::Settled,
            Fenced::Written { .. } if give_up => {
                self.park(&record, now);
                Came::Parked
            }
            Fenced::Written { .. } | Fenced::Refused(_) => Came::Unsettled,
        })
    }

    /// Whether anybody knows, or can be asked, what became of an open call.
    pub(crate) fn is_askable(&self, record: &Record, call: &str, learned: &[Dated<Evidence>]) -> bool {
        let key = record.calls.iter().find(|known| known.name == call).map(|known| &known.key);
        self.reconciler_of(record.scope.operation(), call).is_some()
            || learned
                .iter()
                .any(|learned| Some(&learned.what.key) == key && is_of_the_last_attempt(record, &learned.what.state))
    }

    /// What is known of one open call: by evidence, or from its provider.
    async fn find(&self, record: &Record, call: &CallRecord, learned: &[Dated<Evidence>], bound: Duration) -> Finding {
        let operation = record.scope.operation();
        let told = learned.iter().map(|learned| &learned.what).filter(|evidence| evidence.key == call.key);
        let told = weightiest(told.map(|evidence| &evidence.state));
        let reconciler = self.reconciler_of(operation, &call.name);
        let reconciler = match (told, reconciler) {
            (Some(CallState::Applied(outcome)), _) => return Finding::Applied(outcome.clone()),
            (Some(refused @ CallState::Rejected(reply)), _) if is_of_the_last_attempt(record, refused) => {
                return Finding::Rejected(reply.clone());
            }
            // What was said of an earlier attempt says nothing of this one, whose key is the same.
            (_, Some(reconciler)) => reconciler,
            (Some(never @ CallState::Withdrawn), None) if is_of_the_last_attempt(record, never) => {
                return Finding::NotApplied;
            }
            (_, None) => return Finding::StillUnknown,
        };
        // A provider that does not answer must not use up the lease, nor a client's patience.
        let bound = self.clock().sleep(bound);
        let asking = AssertUnwindSafe(reconciler.find(record, call)).catch_unwind();
        let found = match select(pin!(asking), bound).await {
            Either::Left((found, _)) => found.unwrap_or_else(|_| Err(Transient::new("the reconciler panicked"))),
            Either::Right(_) => {
                tracing::warn!(operation, call = call.name, "a provider did not answer what became of a call");
                return Finding::StillUnknown;
            }
        };
        found.unwrap_or_else(|error| {
            tracing::warn!(
                operation,
                call = call.name,
                error = &error as &dyn std::error::Error,
                "a provider could not be asked"
            );
            Finding::StillUnknown
        })
    }

    /// T11, T11r: what the call means is the application's to say.
    async fn settle(
        &self,
        settles: &dyn Settles,
        settling: Settling<'_>,
        now: SystemTime,
        bound: Duration,
    ) -> Result<Came, StoreError> {
        let Settling { owner, record, call, rules, .. } = settling;
        let (operation, name) = (record.scope.operation(), &call.name);
        let step = match settling.call.state {
            CallState::Rejected(_) => RecoveryStep::Rejected,
            _ => RecoveryStep::Applied,
        };
        // Rows that are locked must not use up the lease either. What is dropped here is rolled back.
        let settled = AssertUnwindSafe(settles.settle(settling)).catch_unwind();
        let settled = match select(pin!(settled), self.clock().sleep(bound)).await {
            Either::Left((settled, _)) => settled,
            Either::Right(_) => Ok(Err(NotSettled::Reconciler("it took too long".into()))),
        };
        let error = match settled.unwrap_or_else(|_| Err(NotSettled::Reconciler("it panicked".into()))) {
            Ok(Fenced::Written { .. }) => {
                self.observe(&Event::Recovered { operation, step });
                return Ok(Came::Settled);
            }
            // Another's by now, which refuses what is written below as well; or the reconciler's store is not the engine's.
            Ok(Fenced::Refused(_)) => "its transaction does not find the record".into(),
            // A transaction that cannot be committed, in this try and in the next one. A commit that did happen refuses what
            // is written below; a store that is away fails it too.
            Err(NotSettled::Store(error)) => error.into(),
            Err(NotSettled::Reconciler(error)) => error,
        };
        // It is asked about again, later each time, and one day by a person.
        let (ask_in, park) = match asked(call, Finding::StillUnknown, record.ask_attempts, now, rules) {
            Asked::GiveUp => (rules.ask_parked, true),
            Asked::Again(span) => (span.mul_f64(self.clock().fraction()), false),
            Asked::Closed(_) => (rules.ask_cap, false),
        };
        let end = AnsweredEnd::StillUnknown { ask_in, park };
        let written = self.store().answer(owner, &Answered { closed: Vec::new(), resource: None, end }).await?;
        if let Fenced::Refused(_) = written {
            return Ok(Came::Unsettled);
        }
        tracing::error!(operation, call = name, attempts = record.ask_attempts, %error, "a reconciler failed to settle a call");
        if park {
            self.park(record, now);
            return Ok(Came::Parked);
        }
        Ok(Came::Unsettled)
    }

    /// A person is called, once: a parked record is still asked about, and parked again.
    fn park(&self, record: &Record, now: SystemTime) {
        if !record.is_parked() {
            self.alert(record, now);
        }
    }

    /// A person is called.
    pub(crate) fn alert(&self, record: &Record, now: SystemTime) {
        let age = now.duration_since(record.created_at).unwrap_or_default();
        let operation = record.scope.operation();
        self.observe(&Event::Parked { operation, age });
        tracing::error!(
            operation,
            ?age,
            "nobody knows how a command ended, and nobody can be asked: a person has to find out"
        );
    }
}

/// Whether it can be said of no attempt but the last. That a call was refused, or never arrived, may be said of any of those
/// that made it under its key, and the next one may have been taken; that it happened is true of the record, whichever
/// attempt it was.
fn is_of_the_last_attempt(record: &Record, state: &CallState) -> bool {
    record.attempts == 1 || matches!(state, CallState::Applied(_))
}

/// How long a request waits for providers.
const PATIENCE: Duration = Duration::from_secs(2);

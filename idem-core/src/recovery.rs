//! What a worker does for records that no client comes for: release them, ask their providers, or call a person.

use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};

use crate::calls::{CallRecord, CallState, rerunnable};
use crate::decide::{Asked, Finding, Tend, asked, tend};
use crate::engine::Engine;
use crate::events::{Event, RecoveryStep};
use crate::reconciler::{NotSettled, Settles, Settling};
use crate::record::{OwnerToken, Record, Status, StatusName};
use crate::rules::Rules;
use crate::store::{
    Answered, AnsweredEnd, ClosedCall, End, Evidence, Fenced, Found, Guarded, Seen, StoreError, TakeOver, Tended,
};

/// What one round of recovery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that were looked at.
    pub looked: u64,
    /// Abandoned ones that the next client may run.
    pub released: u64,
    /// Ones that nobody knows the end of, to be asked about from now on.
    pub stranded: u64,
    /// Ones that a person was called for.
    pub parked: u64,
    /// Ones whose providers were asked.
    pub asked: u64,
    /// Ones that the asking settled, or made runnable again.
    pub settled: u64,
}

impl Engine {
    /// One round over the records that are due, `limit` at a time, until none is left that was due when it began.
    ///
    /// Any number of nodes may do it at once: each record is taken by one of them.
    ///
    /// # Errors
    /// [`StoreError`] where the due records cannot be read. What goes wrong with one record is logged, and the others
    /// go on.
    pub async fn recover_once(&self, limit: u32) -> Result<Recovered, StoreError> {
        let mut sum = Recovered::default();
        let mut last: Option<Record> = None;
        let mut oldest = [(StatusName::InProgress, Duration::ZERO), (StatusName::Unknown, Duration::ZERO)];
        loop {
            let due = self.store().due(self.shortest_grace(), last.as_ref(), limit).await?;
            let Some(end) = due.last().map(|found| found.record.clone()) else { break };
            for found in due {
                let age = found.now.duration_since(found.record.created_at).unwrap_or_default();
                for (status, oldest) in &mut oldest {
                    if found.record.status.name() == *status {
                        *oldest = (*oldest).max(age);
                    }
                }
                sum.looked += 1;
                if let Err(error) = self.recover(found, &mut sum).await {
                    self.observe(&Event::StoreFailed { code: error.code() });
                    tracing::warn!(code = error.code(), %error, "a record could not be recovered; the next round tries again");
                }
            }
            last = Some(end);
        }
        for (status, age) in oldest {
            self.observe(&Event::Oldest { status, age });
        }
        Ok(sum)
    }

    /// Keeps what was learned about a call from outside of its owner (a provider's webhook, a late outcome), and makes its
    /// record due at once. False where no call has that key.
    ///
    /// # Errors
    /// [`StoreError`]; sent again it may be kept twice, which harms nothing.
    pub async fn evidence(&self, evidence: &Evidence) -> Result<bool, StoreError> {
        Ok(self.store().learn(evidence).await?.is_some())
    }

    async fn recover(&self, found: Found, sum: &mut Recovered) -> Result<(), StoreError> {
        let Found { record, now } = found;
        let operation = record.scope.operation();
        let rules = self.rules_of(operation).clone();
        let learned = if matches!(record.status, Status::Unknown { .. }) {
            self.store().learned(&record.scope).await?
        } else {
            Vec::new()
        };
        let askable = |name: &str| {
            let key = record.calls.iter().find(|call| call.name == name).map(|call| &call.key);
            self.reconciler_of(operation, name).is_some() || learned.iter().any(|evidence| Some(&evidence.key) == key)
        };
        let seen = Seen::of(&record);
        let (to, step) = match tend(&record, &askable, now, &rules) {
            Tend::Leave => return Ok(()),
            Tend::Release => {
                let to = Tended::Released { retry_in: rules.backoff, keep: rules.keep() };
                (to, Some(RecoveryStep::Released))
            }
            Tend::Strand => (Tended::Stranded { ask_in: Duration::ZERO }, Some(RecoveryStep::Stranded)),
            Tend::Park => (Tended::Parked { ask_in: rules.ask_parked }, None),
            Tend::Ask => return self.ask(record, &learned, &rules, sum).await,
        };
        if let Guarded::Changed(_) = self.store().tend(&seen, &to).await? {
            return Ok(());
        }
        match step {
            Some(step) => {
                self.observe(&Event::Recovered { operation, step });
                sum.released += u64::from(step == RecoveryStep::Released);
                sum.stranded += u64::from(step == RecoveryStep::Stranded);
            }
            None => {
                self.alert(&record, now);
                sum.parked += 1;
            }
        }
        Ok(())
    }

    /// T10 to T13.
    async fn ask(
        &self,
        record: Record,
        learned: &[Evidence],
        rules: &Rules,
        sum: &mut Recovered,
    ) -> Result<(), StoreError> {
        let take = TakeOver { seen: Seen::of(&record), owner: OwnerToken::random(), lease: rules.ask_lease };
        let Guarded::Written { now } = self.store().take_to_ask(&take).await? else { return Ok(()) };
        sum.asked += 1;
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
            let finding = self.find(&record, &record.calls[at], learned, rules).await;
            let call = &mut record.calls[at];
            match asked(call, finding, record.ask_attempts, now, rules) {
                Asked::Closed(state) => {
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
        let known = closed.iter().rev().find(|call| call.state != CallState::Withdrawn).map(|call| call.name.clone());
        let answered = match &known {
            _ if closed.is_empty() => still_unknown(closed),
            // Others are open still: the next attempt goes on where it may, and gets what is known by now.
            _ if record.has_open_call() && rerunnable(&record.calls, now, rules.margin()) => resume(closed),
            _ if record.has_open_call() => still_unknown(closed),
            None => resume(closed),
            Some(call) => match self.reconciler_of(record.scope.operation(), call) {
                Some(settles) => {
                    let call = record.calls.iter().find(|known| known.name == *call);
                    let call = call.expect("it was found among them");
                    let kept_headers = self.kept_headers();
                    let settling = Settling { owner: &owner, record: &record, call, closed, rules, kept_headers };
                    return self.settle(&**settles, settling, sum).await;
                }
                None => resume(closed),
            },
        };
        let step = match answered.end {
            AnsweredEnd::Ended(_) if known.is_some() => RecoveryStep::Applied,
            AnsweredEnd::Ended(_) => RecoveryStep::NotApplied,
            AnsweredEnd::StillUnknown { .. } => RecoveryStep::StillUnknown,
        };
        let settles = matches!(answered.end, AnsweredEnd::Ended(_));
        let written = self.store().answer(&owner, &answered).await?;
        if let Fenced::Written { .. } = written {
            self.observe(&Event::Recovered { operation: record.scope.operation(), step });
        }
        match written {
            Fenced::Written { .. } if settles => sum.settled += 1,
            Fenced::Written { .. } if give_up => {
                sum.parked += 1;
                self.alert(&record, now);
            }
            Fenced::Written { .. } | Fenced::Refused(_) => {}
        }
        Ok(())
    }

    /// What is known of one open call: by evidence, or from its provider.
    async fn find(&self, record: &Record, call: &CallRecord, learned: &[Evidence], rules: &Rules) -> Finding {
        let operation = record.scope.operation();
        let told = learned.iter().filter(|evidence| evidence.key == call.key).map(|evidence| &evidence.state);
        // Of contradicting evidence that counts which says that money moved.
        if let Some(state) = told.max_by_key(|state| weight(state)) {
            return match state {
                CallState::Applied(outcome) => Finding::Applied(outcome.clone()),
                CallState::Rejected(reply) => Finding::Rejected(reply.clone()),
                CallState::Withdrawn => Finding::NotApplied,
                CallState::Open => Finding::StillUnknown,
            };
        }
        let Some(reconciler) = self.reconciler_of(operation, &call.name) else { return Finding::StillUnknown };
        // A provider that does not answer must not use up the lease.
        let bound = self.clock().sleep(rules.ask_lease / 2);
        let asking = reconciler.find(record, call);
        let found = match select(asking, bound).await {
            Either::Left((found, _)) => found,
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
        sum: &mut Recovered,
    ) -> Result<(), StoreError> {
        let operation = settling.record.scope.operation();
        let (record, name) = (settling.record, &settling.call.name);
        let step = match settling.call.state {
            CallState::Rejected(_) => RecoveryStep::Rejected,
            _ => RecoveryStep::Applied,
        };
        match settles.settle(settling).await {
            Ok(Fenced::Written { .. }) => {
                sum.settled += 1;
                self.observe(&Event::Recovered { operation, step });
                Ok(())
            }
            Ok(Fenced::Refused(_)) => Ok(()),
            Err(NotSettled::Store(error)) => Err(error),
            // Its lease ends by itself, and it is asked about again.
            Err(NotSettled::Reconciler(error)) => {
                tracing::error!(operation, call = name, attempts = record.ask_attempts, %error, "a reconciler failed to settle a call");
                Ok(())
            }
        }
    }

    fn alert(&self, record: &Record, now: SystemTime) {
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

fn weight(state: &CallState) -> u8 {
    match state {
        CallState::Applied(_) => 3,
        CallState::Rejected(_) => 2,
        CallState::Withdrawn => 1,
        CallState::Open => 0,
    }
}

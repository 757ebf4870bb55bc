//! Running the work, and storing how it ended before anybody hears of it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt;
use futures_util::future::{Either, poll_immediate, select};

use crate::calls::resource_id;
use crate::decide::{Becomes, Ended, becomes, decide_lost};
use crate::engine::{Answer, Claim, Engine, MOMENT, Outcome, answer};
use crate::record::StatusName;
use crate::reply::{Failure, Reply};
use crate::rules::Rules;
use crate::store::{End, Fenced, Finish, Found, StoreError, after};

impl Engine {
    /// Runs the work of a claim, stores how it ended, and gives the outcome.
    ///
    /// `early` is called once, before the end, if storing takes longer than the operation's patience: whoever waits
    /// for the answer should be told [`Outcome::NotStored`] then. The storing goes on until it succeeds, the claim
    /// is lost, or the process ends.
    ///
    /// With the feature `tracing` all of it runs in a span `idempotent` (operation, attempt, id, and in the end state).
    pub async fn conduct<W, F>(&self, claim: Claim, work: W, early: impl FnOnce(Outcome)) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        #[cfg(feature = "tracing")]
        let span = claim.span();
        let conducted = self.conducted(claim, work, early);
        #[cfg(feature = "tracing")]
        let conducted = tracing::Instrument::instrument(conducted, span);
        conducted.await
    }

    async fn conducted<W, F>(&self, claim: Claim, work: W, early: impl FnOnce(Outcome)) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        let handle = claim.clone();
        let begun = Instant::now();
        let run = AssertUnwindSafe(async move { work(handle).await }).catch_unwind().await;
        let (ran, ended) = (begun.elapsed(), Instant::now());
        let mut is_late = false;
        let (outcome, stored) = {
            let mut storing = pin!(claim.conclude(run));
            // A timer costs more than storing in memory does.
            match poll_immediate(&mut storing).await {
                Some(concluded) => concluded,
                None => {
                    let patience = self.inner.clock.sleep(claim.rules().patience);
                    match select(&mut storing, patience).await {
                        Either::Left((concluded, _)) => concluded,
                        Either::Right(_) => {
                            is_late = true;
                            claim.tell_not_stored();
                            early(Outcome::NotStored { retry_after: MOMENT });
                            storing.await
                        }
                    }
                }
            }
        };
        claim.live.end();
        match (stored, &outcome) {
            (Some(status), _) => claim.tell_ended(status, ran, ended.elapsed()),
            (None, Outcome::NotStored { .. }) if is_late => {}
            (None, Outcome::NotStored { .. }) => claim.tell_not_stored(),
            (None, _) => claim.tell_lost(),
        }
        outcome
    }
}

type Run = Result<Result<Reply, Failure>, Box<dyn std::any::Any + Send>>;

impl Claim {
    pub(super) fn rules(&self) -> &Rules {
        self.engine.rules(self.scope().operation())
    }

    /// Classifies the end by the table, and stores it; gives how the record stands by that, where it was stored.
    async fn conclude(&self, run: Run) -> (Outcome, Option<StatusName>) {
        let (ended, reply, asked_for) = self.told(run);
        let rules = self.rules();
        let committing = self.progress.lock().await.committing.clone();
        if let Some((done, status)) = committing.clone().and_then(|committing| committing.outcome(None)) {
            return (done, Some(status));
        }
        // Whose commit failed has not succeeded, whatever the work made of it.
        let (ended, reply) = match ended {
            Ended::Replied(200..=399) if committing.is_some() => (Ended::Broke, None),
            ended => (ended, reply),
        };
        let (finish, retry_after) = {
            let mut progress = self.progress.lock().await;
            if let Err(error) = self.read_joined(&mut progress).await {
                // They count as made, then.
                self.log_unstored(&error);
            }
            let becomes = becomes(ended, &progress.calls, self.store_now(), rules);
            let kept = || {
                let kept_of = |reply: &Reply| reply.kept(becomes, rules, &self.engine.kept_headers);
                // A final state without an answer has the work's word that it is final.
                reply.as_ref().map_or_else(|| kept_of(&Reply::status(422)), kept_of)
            };
            let retry_after = self.retry_after(becomes, asked_for);
            let end = match becomes {
                Becomes::Completed => End::Completed { response: kept(), keep: rules.keep() },
                Becomes::FailedReplayable => End::FailedReplayable { response: kept(), keep: rules.keep() },
                Becomes::FailedRetryable => End::FailedRetryable { retry_in: retry_after, keep: rules.keep() },
                Becomes::Unknown => End::Unknown { ask_in: retry_after },
            };
            let finish = Finish { closed: progress.unwritten.clone(), resource: progress.resource.clone(), end };
            (finish, retry_after)
        };
        match self.store_end(&finish, committing.is_none()).await {
            Stored::At(now) => {
                let status = finish.end.status();
                let outcome = match finish.end {
                    End::Completed { keep, .. } | End::FailedReplayable { keep, .. } => {
                        let reply = reply.unwrap_or_else(|| Reply::status(422));
                        Outcome::Done { reply, expires_at: after(now, keep.window) }
                    }
                    End::FailedRetryable { .. } => Outcome::Failed { reply, retry_after: retry_after.max(MOMENT) },
                    End::Unknown { .. } => Outcome::Unknown { reply, retry_after: retry_after.max(MOMENT) },
                };
                (outcome, Some(status))
            }
            Stored::Lost(found) => {
                self.live.lose();
                let own = found.as_ref().filter(|found| found.record.ownership() == self.live.ownership);
                let shown = own.map(|found| found.record.status.name());
                if let Some((done, status)) = committing.and_then(|committing| committing.outcome(shown)) {
                    return (done, Some(status));
                }
                self.keep_late(&mut *self.progress.lock().await).await;
                let second = Outcome::Second(match found {
                    Some(found) => {
                        let decision = decide_lost(&found.record, self.command_hash(), found.now, rules);
                        answer(&found.record, decision)
                    }
                    None => Answer::InProgress { retry_after: MOMENT },
                });
                (second, None)
            }
            Stored::Never => (Outcome::NotStored { retry_after: MOMENT }, None),
        }
    }

    /// The end as the table sees it, the answer that it brought, and the wait that a provider asked for.
    fn told(&self, run: Run) -> (Ended, Option<Reply>, Option<Duration>) {
        let operation = self.scope().operation();
        // A 403 that is final stands where a refused call does: above the statuses, below the open calls.
        let by_option = |ended| match ended {
            Ended::Replied(403) if self.engine.forbidden_is_final => Ended::Refused,
            ended => ended,
        };
        match run {
            Ok(Ok(reply)) => (by_option(Ended::Replied(reply.status)), Some(reply), None),
            Ok(Err(failure)) => {
                let ended = by_option(failure.ended());
                if let Some(error) = failure.source() {
                    let r#type = failure.source_type().unwrap_or_default();
                    let (attempt, id) = (self.attempt(), self.id());
                    tracing::warn!(operation, id, attempt, r#type, error, ?ended, "the work failed");
                }
                let (reply, asked_for) = failure.into_parts();
                (ended, reply, asked_for)
            }
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                let (attempt, id) = (self.attempt(), self.id());
                tracing::error!(operation, id, attempt, panic = text, "the work panicked");
                (Ended::Broke, None, None)
            }
        }
    }

    /// The wait until the next attempt or question: what the provider asked for, or the backoff with full jitter
    /// (after Brooker, "Exponential Backoff And Jitter", 2015).
    fn retry_after(&self, becomes: Becomes, asked_for: Option<Duration>) -> Duration {
        let rules = self.rules();
        match (becomes, asked_for) {
            (Becomes::FailedRetryable, Some(asked_for)) => asked_for.min(rules.window),
            (Becomes::FailedRetryable, None) => {
                rules.backoff_after(self.attempt()).mul_f64(self.engine.clock.fraction())
            }
            _ => rules.backoff,
        }
    }

    /// Where whatever the work logs is found by its command.
    #[cfg(feature = "tracing")]
    fn span(&self) -> tracing::Span {
        let (operation, attempt) = (self.scope().operation(), self.attempt());
        let span = tracing::info_span!(
            target: "idempotency", "idempotent", operation, attempt,
            id = tracing::field::Empty, state = tracing::field::Empty,
        );
        // A hash, and nobody reads it where nobody listens.
        if !span.is_disabled() {
            span.record("id", self.id());
        }
        span
    }

    /// What a log names the command by: the part that its derived ids share. The key is the client's.
    fn id(&self) -> String {
        resource_id(&self.engine.namespace, self.scope())
    }

    /// T4 to T7, tried until it is stored or refused. `alone`: no transaction of this claim could have ended it.
    async fn store_end(&self, finish: &Finish, alone: bool) -> Stored {
        if !self.recorded {
            return Stored::At(self.store_now());
        }
        let mut wait = FIRST_RETRY;
        loop {
            match self.engine.store.finish(&self.live.ownership, finish).await {
                Ok(Fenced::Written { now }) => return Stored::At(now),
                Ok(Fenced::Refused(Some(found))) if alone && self.is_own_end(&found, finish) => {
                    return Stored::At(found.now);
                }
                Ok(Fenced::Refused(found)) => return Stored::Lost(found),
                Err(error) if error.is_transient() => self.log_unstored(&error),
                Err(error) => {
                    self.log_unstored(&error);
                    return Stored::Never;
                }
            }
            self.engine.clock.sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Whether the record shows this very end: the answer to an earlier try was lost. Under our fence and our token
    /// nobody else ends it in this state.
    fn is_own_end(&self, found: &Found, finish: &Finish) -> bool {
        found.record.ownership() == self.live.ownership && found.record.status.name() == finish.end.status()
    }

    fn log_unstored(&self, error: &StoreError) {
        tracing::error!(
            operation = self.scope().operation(),
            id = self.id(),
            code = error.code(),
            error = error as &dyn std::error::Error,
            "the outcome of the work could not be stored"
        );
    }
}

enum Stored {
    At(SystemTime),
    Lost(Option<Box<Found>>),
    Never,
}

const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

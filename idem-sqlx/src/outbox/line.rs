//! One line of events: published one after the other, for as long as it goes well.

use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use idem_core::StoreError;
use tokio::time::Instant;

use crate::outbox::statements::{Lease, Settle, Settled, Taken};
use crate::outbox::{OutboxStore, Publish, PublishError, RelayOptions, Relayed};

/// What a line is worked with.
pub(super) struct Line<S> {
    pub(super) store: S,
    pub(super) publisher: Arc<dyn Publish>,
    pub(super) options: RelayOptions,
    pub(super) lease: Lease,
    pub(super) budget: Arc<Budget>,
}

/// What a line came to.
pub(super) struct Ended {
    pub(super) relayed: Relayed,
    /// It has given its place to another one, and may have more.
    pub(super) rests: bool,
}

impl<S: OutboxStore> Line<S> {
    /// From the event that was taken on, until the line is at its end, an event does not go out, no more may be taken, or
    /// it is another line's turn. `asked_at`: when the event was asked for; its lease began after that.
    pub(super) async fn run(self, first: Taken, asked_at: Instant) -> Ended {
        let mut ended = Ended { relayed: Relayed::default(), rests: false };
        let relayed = &mut ended.relayed;
        let mut at_hand = Some((first, asked_at));
        while let Some((taken, asked_at)) = at_hand.take() {
            let is_last = relayed.published + 1 >= u64::from(self.options.quantum);
            let settle = self.publish(&taken, asked_at, is_last).await;
            let (settled, asked_at) = self.settle(taken.number, &settle, asked_at).await;
            match settled {
                Ok(Settled::Done(next)) => {
                    match settle {
                        Settle::Published { next: true } if next.is_none() => self.budget.give_back(1),
                        Settle::Published { next: false } => ended.rests = is_last,
                        _ => {}
                    }
                    relayed.count(&settle);
                    match next.map(|next| *next) {
                        Some(Ok(next)) => at_hand = Some((next, asked_at)),
                        Some(Err(unreadable)) => relayed.bury(&unreadable),
                        None => {}
                    }
                }
                Ok(Settled::Lost) => {
                    tracing::warn!(event = taken.event.id, "an event was published after its lease: it goes out again");
                    relayed.lost += 1;
                }
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::warn!(
                        event = taken.event.id,
                        error,
                        "what became of an event was not stored: it goes out again"
                    );
                    relayed.lost += 1;
                }
            }
        }
        ended
    }

    /// Publishes it, and says what that comes to.
    async fn publish(&self, taken: &Taken, asked_at: Instant, is_last: bool) -> Settle {
        let Taken { event, attempts, .. } = taken;
        if *attempts > self.options.attempts {
            // A relay that has an event says what became of it. None did: it takes its relays down with it.
            tracing::error!(
                event = event.id,
                topic = event.topic,
                attempts,
                "an event is dead: no relay came back from it"
            );
            return Settle::Dead { why: "no relay came back from it".to_owned() };
        }
        // The lease has run since the database gave it, however long the answer was on its way.
        let until = asked_at + self.lease.span / 2;
        if Instant::now() >= until {
            tracing::warn!(event = event.id, topic = event.topic, "an event was taken too late to publish it");
            return Settle::Untried;
        }
        let publishing = AssertUnwindSafe(self.publisher.publish(event)).catch_unwind();
        let error = match tokio::time::timeout_at(until, publishing).await {
            Ok(Ok(Ok(()))) => return Settle::Published { next: !is_last && self.budget.take(1) == 1 },
            Ok(Ok(Err(error))) => error,
            Ok(Err(_panic)) => PublishError::retry("the publisher panicked"),
            Err(_elapsed) => PublishError::retry("the publisher did not answer within half of the lease"),
        };
        let why = told(&error);
        if matches!(error, PublishError::Retry(_)) && *attempts < self.options.attempts {
            tracing::warn!(event = event.id, topic = event.topic, attempts, error = why, "an event did not go out");
            return Settle::Later { pause: self.options.pause(*attempts), why };
        }
        tracing::error!(
            event = event.id,
            topic = event.topic,
            attempts,
            error = why,
            "an event is dead: a person has to look"
        );
        Settle::Dead { why }
    }

    /// A database that is away for a moment must not have an event published twice: it is tried for as long as the lease
    /// allows. With when it was asked, the last time: where it gives the next event, that one's lease began after that.
    async fn settle(&self, number: i64, settle: &Settle, asked_at: Instant) -> (Result<Settled, StoreError>, Instant) {
        let until = asked_at + self.lease.span;
        let mut wait = (self.lease.span / 256).min(LONGEST_WAIT);
        loop {
            let asked_at = Instant::now();
            match self.store.settle(&self.lease, number, settle).await {
                Err(error) if error.is_transient() && Instant::now() + wait < until => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                settled => return (settled, asked_at),
            }
        }
    }
}

/// The error with its causes, as the row keeps it.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    // PostgreSQL's texts have no NUL.
    text.replace('\0', "").chars().take(LONGEST).collect()
}

/// How many more events may be taken.
pub(super) struct Budget {
    /// `None`: as many as there are.
    left: Option<AtomicU32>,
    ended: AtomicBool,
}

impl Budget {
    pub(super) fn of(limit: u32) -> Arc<Self> {
        Arc::new(Self { left: Some(AtomicU32::new(limit)), ended: AtomicBool::new(false) })
    }

    pub(super) fn unlimited() -> Arc<Self> {
        Arc::new(Self { left: None, ended: AtomicBool::new(false) })
    }

    /// Takes up to so many; how many it got.
    pub(super) fn take(&self, wanted: u32) -> u32 {
        if self.ended.load(Ordering::Relaxed) {
            return 0;
        }
        let Some(left) = &self.left else { return wanted };
        let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(wanted)));
        left.unwrap_or_default().min(wanted)
    }

    /// Gives back what nothing was found for.
    pub(super) fn give_back(&self, unused: u32) {
        if let Some(left) = &self.left {
            left.fetch_add(unused, Ordering::Relaxed);
        }
    }

    /// Nothing more is taken.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

const LONGEST: usize = 2000;

/// Between two tries at storing what became of an event.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl RelayOptions {
    /// Full jitter: events that failed together do not come back together.
    fn pause(&self, attempts: u32) -> Duration {
        let doubled = self.backoff.saturating_mul(2u32.saturating_pow(attempts.saturating_sub(1)));
        doubled.min(self.backoff_cap).mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod slow;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_overdrawn() {
        let budget = Budget::of(3);
        assert_eq!((budget.take(2), budget.take(2), budget.take(2)), (2, 1, 0));
        budget.give_back(1);
        assert_eq!(budget.take(5), 1);
        budget.give_back(3);
        budget.end();
        assert_eq!(budget.take(1), 0);
    }

    #[test]
    fn a_pause_is_never_longer_than_its_cap() {
        let options = RelayOptions::default();
        for attempts in [1, 2, 10, 40, u32::MAX] {
            for _ in 0..100 {
                assert!(options.pause(attempts) <= options.backoff_cap);
            }
        }
        let first = (0..100).map(|_| options.pause(1)).max().unwrap();
        assert!(first <= options.backoff, "{first:?}");
    }
}

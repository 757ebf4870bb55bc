//! Publishing what is committed: [`Relay`].

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use idem_core::{OwnerToken, StoreError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::inbox;
use crate::outbox::line::{Budget, Ended, Line};
use crate::outbox::statements::{Lease, Settle, Unreadable};
use crate::outbox::{OutboxStore, Publish};

/// Publishes the events of a store: each at least once, and those of one topic and key in the order of their commits.
///
/// An event is taken for the span of a lease, published, and marked as out before the next one of its key is taken; a
/// relay that dies in between leaves it to another one, which publishes it again. So any number of relays may run over
/// one store, on any nodes; on SQLite they take turns, as all who write do. Leases and pauses are told by the database's
/// clock. An event that fails holds up the later ones of its key, and no other key.
///
/// An event that is refused, or has failed [`RelayOptions::attempts`] times, becomes a
/// [`DeadLetter`](crate::outbox::DeadLetter), and still holds up its key.
pub struct Relay<S> {
    store: S,
    publisher: Arc<dyn Publish>,
    options: RelayOptions,
}

/// How a relay goes about it. A span that is longer than a hundred years counts as a hundred.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// For how long an event is one relay's, from when it was asked for. Publishing is given up after half of it; the rest
    /// is for storing what became of it. Default 30 s.
    pub lease: Duration,
    /// How many keys are worked on at once, at least 1. Default 16.
    pub lines: u32,
    /// How many events of one key are published in a row, at least 1, while others wait: a key that never runs dry does not
    /// keep its place for ever. Default 64.
    pub quantum: u32,
    /// The pause before [`Relay::run`] looks for events again that it had none of, before jitter of up to a half.
    /// Default 1 s.
    pub poll: Duration,
    /// The pause after a first failure, doubled by each further one, with full jitter. Default 1 s.
    pub backoff: Duration,
    /// The longest pause. Default 10 min.
    pub backoff_cap: Duration,
    /// After so many failures an event is dead. Default 100, which with these pauses is about eight hours: an outage of
    /// the broker should not leave dead letters.
    pub attempts: u32,
    /// How long an event is kept after it went out. As long, a run of its command that comes late appends no second one:
    /// longer than the command's replay window, therefore. Default 7 days.
    pub retention: Duration,
    /// The pause between two rounds of cleaning up in [`Relay::run`], before jitter of up to a half. Default 60 s.
    pub clean_every: Duration,
}

impl RelayOptions {
    /// Spans that clocks and databases can add to an instant.
    fn clamped(mut self) -> Self {
        let Self { lease, lines: _, quantum: _, poll, backoff, backoff_cap, attempts: _, retention, clean_every } =
            &mut self;
        for span in [lease, poll, backoff, backoff_cap, retention, clean_every] {
            *span = (*span).min(LONGEST_SPAN);
        }
        self
    }
}

impl Default for RelayOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            lines: 16,
            quantum: 64,
            poll: Duration::from_secs(1),
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(10 * 60),
            attempts: 100,
            retention: Duration::from_secs(7 * 24 * 60 * 60),
            clean_every: Duration::from_secs(60),
        }
    }
}

/// What became of the events of one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relayed {
    /// They went out.
    pub published: u64,
    /// They failed, and are tried again.
    pub failed: u64,
    /// They became dead letters.
    pub dead: u64,
    /// What became of them could not be stored, or came after the lease, or nobody tried, since the lease was half over
    /// when they came: they go out again.
    pub lost: u64,
}

impl Relayed {
    pub(super) fn count(&mut self, settle: &Settle) {
        match settle {
            Settle::Published { .. } => self.published += 1,
            Settle::Later { .. } => self.failed += 1,
            Settle::Dead { .. } => self.dead += 1,
            Settle::Untried => self.lost += 1,
        }
    }

    /// Counts a row that is dead since it does not read.
    pub(super) fn bury(&mut self, unreadable: &Unreadable) {
        let error = unreadable.why();
        tracing::error!(event = unreadable.id, error, "an event is dead: a person has to look");
        self.dead += 1;
    }

    fn add(&mut self, other: Self) {
        self.published += other.published;
        self.failed += other.failed;
        self.dead += other.dead;
        self.lost += other.lost;
    }
}

impl<S: OutboxStore> Relay<S> {
    /// A relay over the events beside the records of `store`.
    pub fn new(store: S, publisher: impl Publish + 'static) -> Self {
        Self { store, publisher: Arc::new(publisher), options: RelayOptions::default() }
    }

    /// With other options.
    #[must_use]
    pub fn options(mut self, options: RelayOptions) -> Self {
        self.options = options.clamped();
        self
    }

    /// One round: publishes what is due, until nothing more is, or `limit` events were taken. For tests, and for a
    /// scheduler of the application's own.
    ///
    /// It may be dropped at any point: what it had goes out again after the lease.
    ///
    /// # Errors
    /// [`StoreError`] where events cannot be taken; what was taken before has been brought to its end.
    pub async fn relay_once(&self, limit: u32) -> Result<Relayed, StoreError> {
        let budget = Budget::of(limit);
        let (mut lines, mut sum) = (JoinSet::new(), Relayed::default());
        let mut more = Ok(true);
        loop {
            if let Ok(true) = more {
                more = self.fill(&mut lines, &budget, &mut sum).await;
            }
            match lines.join_next().await {
                Some(ended) => {
                    let Ended { relayed, rests } = told(ended);
                    sum.add(relayed);
                    more = more.map(|more| more || rests);
                }
                None => return more.map(|_| sum),
            }
        }
    }

    /// Publishes and cleans up until `until` comes, then ends what is under way and takes nothing more. Errors are logged,
    /// and the next look tries again.
    ///
    /// ```no_run
    /// # async fn serve(store: idem_sqlx::SqliteStore, broker: impl idem_sqlx::outbox::Publish + 'static) {
    /// use idem_sqlx::outbox::Relay;
    ///
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let relay = Relay::new(store, broker);
    /// let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    /// // … serve …
    /// drop(stop);
    /// let _ = running.await;
    /// # }
    /// ```
    pub async fn run(&self, until: impl Future<Output = ()>) {
        let (mut until, mut cleaning) = (pin!(until), pin!(self.clean_for_ever()));
        let budget = Budget::unlimited();
        let mut lines = JoinSet::new();
        let mut look = true;
        loop {
            if std::mem::take(&mut look)
                && let Err(error) = self.fill(&mut lines, &budget, &mut Relayed::default()).await
            {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "events cannot be taken; the next look tries again");
            }
            tokio::select! {
                () = &mut until => break,
                () = &mut cleaning => {}
                // There is room for another line at once; but not where the broker is in trouble.
                Some(ended) = lines.join_next() => {
                    let Relayed { failed, dead, lost, .. } = told(ended).relayed;
                    look = failed + dead + lost == 0;
                }
                () = tokio::time::sleep(jittered(self.options.poll)) => look = true,
            }
        }
        budget.end();
        while let Some(ended) = lines.join_next().await {
            told(ended);
        }
    }

    /// One batch of cleaning: events that went out, or were skipped, longer than [`RelayOptions::retention`] ago; and events
    /// that have long waited behind another one are put out of the way of who looks for others. How many rows; any number
    /// of nodes may do it at once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clean_once(&self, limit: u32) -> Result<u64, StoreError> {
        self.store.clean(self.options.retention, limit).await
    }

    /// Puts as many lines to work as there is room for; whether there may be more.
    async fn fill(
        &self,
        lines: &mut JoinSet<Ended>,
        budget: &Arc<Budget>,
        sum: &mut Relayed,
    ) -> Result<bool, StoreError> {
        let working = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let asked = budget.take(self.options.lines.max(1).saturating_sub(working));
        if asked == 0 {
            return Ok(true);
        }
        let lease = Lease { owner: OwnerToken::random(), span: self.options.lease };
        let asked_at = Instant::now();
        let taken = self.store.take(&lease, asked).await.inspect_err(|_| budget.give_back(asked))?;
        let found = u32::try_from(taken.len()).unwrap_or(asked);
        budget.give_back(asked - found);
        for taken in taken {
            let line = Line {
                store: self.store.clone(),
                publisher: Arc::clone(&self.publisher),
                options: self.options.clone(),
                lease,
                budget: Arc::clone(budget),
            };
            match taken {
                Ok(taken) => {
                    lines.spawn(line.run(taken, asked_at));
                }
                Err(unreadable) => sum.bury(&unreadable),
            }
        }
        Ok(found == asked)
    }

    async fn clean_for_ever(&self) {
        loop {
            tokio::time::sleep(jittered(self.options.clean_every)).await;
            if let Err(error) = self.clean().await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "events that are out cannot be cleaned up; the next round tries again");
            }
        }
    }

    /// Until nothing is left that a batch finds.
    async fn clean(&self) -> Result<(), StoreError> {
        while self.clean_once(BATCH).await? + inbox::clean_once(&self.store, BATCH).await? > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(())
    }
}

/// What a line came to. One that panicked had something wrong in it that is not the publisher.
fn told(ended: Result<Ended, tokio::task::JoinError>) -> Ended {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "a line of events ended badly: it goes on after its lease");
        Ended { relayed: Relayed { lost: 1, ..Relayed::default() }, rests: false }
    })
}

/// Relays that were started together drift apart.
fn jittered(span: Duration) -> Duration {
    span.mul_f64(1.0 + fastrand::f64() / 2.0)
}

impl<S: fmt::Debug> fmt::Debug for Relay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("store", &self.store).field("options", &self.options).finish_non_exhaustive()
    }
}

/// Small batches hold few locks, and each for a short time.
pub(super) const BATCH: u32 = 500;
const BETWEEN: Duration = Duration::from_millis(10);

pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

//! Chance and time of one run, and what happened in it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_core::Clock;
use tokio::time::Instant;

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Chance {
    rng: Arc<Mutex<fastrand::Rng>>,
    start: Instant,
    faults: Arc<AtomicBool>,
    /// In some runs waits are often longer than the lease.
    pub(crate) sluggish: bool,
    history: Arc<Mutex<Vec<Event>>>,
}

/// One line of a run's history.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

/// What is known of an operation: it began, it ended well, it did not happen, or nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            sluggish: rng.u64(0..100) < 25,
            rng: Arc::new(Mutex::new(rng)),
            start: Instant::now(),
            faults: Arc::new(AtomicBool::new(true)),
            history: Arc::default(),
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap().u64(0..bound)
    }

    /// So often in a hundred times.
    pub(crate) fn percent(&self, often: u64) -> bool {
        self.below(100) < often
    }

    /// So often in a hundred times, as long as anything goes wrong.
    pub(crate) fn wrong(&self, often: u64) -> bool {
        self.has_faults() && self.percent(often)
    }

    /// Up to `usually`, sometimes for longer than the lease.
    pub(crate) async fn linger(&self, usually: Duration) {
        let often = if self.sluggish { 40 } else { 4 };
        self.wait(if self.wrong(often) { Duration::from_secs(120) } else { usually }).await;
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.faults.load(Ordering::Relaxed)
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.faults.store(false, Ordering::Relaxed);
    }

    pub(crate) fn millis(&self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound.max(1)))
    }

    pub(crate) async fn wait(&self, bound: Duration) {
        tokio::time::sleep(self.millis(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX))).await;
    }

    pub(crate) fn tell(&self, kind: Kind, what: impl FnOnce() -> String) {
        let event = Event { at: self.start.elapsed(), kind, what: what() };
        self.history.lock().unwrap().push(event);
    }

    pub(crate) fn history(&self) -> Vec<Event> {
        self.history.lock().unwrap().clone()
    }
}

/// A clock that may be set.
#[derive(Clone)]
pub(crate) struct SetClock {
    chance: Chance,
    start: Instant,
    ahead: Arc<AtomicI64>,
}

impl SetClock {
    pub(crate) fn new(chance: &Chance, ahead: i64) -> Self {
        Self { chance: chance.clone(), start: Instant::now(), ahead: Arc::new(AtomicI64::new(ahead)) }
    }

    pub(crate) fn set(&self, ahead: i64) {
        self.ahead.store(ahead, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for SetClock {
    fn now(&self) -> SystemTime {
        let set = 1_800_000_000 + self.ahead.load(Ordering::Relaxed);
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(set).unwrap_or_default()) + self.start.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn fraction(&self) -> f64 {
        self.chance.below(1 << 20) as f64 / (1 << 20) as f64
    }
}

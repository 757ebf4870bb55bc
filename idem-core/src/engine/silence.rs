//! Whether workers are alive, told by who is none: nobody hears of a dead one from itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::engine::Inner;
use crate::events::Event;

/// When this engine looks for a worker's sign of life next.
pub(super) struct Lookout {
    since: SystemTime,
    /// In seconds after `since`.
    next: AtomicU64,
}

impl Lookout {
    pub(super) fn new(now: SystemTime) -> Self {
        Self { since: now, next: AtomicU64::new(EVERY.as_secs()) }
    }

    /// How long this engine has been there, once in a while, for one of all that ask.
    fn turn(&self, now: SystemTime) -> Option<Duration> {
        let age = now.duration_since(self.since).unwrap_or_default();
        let next = self.next.load(Ordering::Relaxed);
        let then = (age + EVERY).as_secs();
        let is_turn = age.as_secs() >= next
            && self.next.compare_exchange(next, then, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_turn.then_some(age)
    }
}

impl Inner {
    /// Looks for a worker's last sign of life, once a minute, on the way of a request; it tells the observer, and nobody
    /// else. Where there never was one it counts how long this engine has been without.
    pub(super) async fn look_for_workers(&self) {
        let Some(age) = self.lookout.turn(self.clock.now()) else { return };
        match self.store.silence().await {
            Ok(silence) => match silence.unwrap_or(age) {
                silence if silence >= SILENCE => self.observer.observe(&Event::NoWorker { silence }),
                silence => self.observer.observe(&Event::WorkerSeen { silence }),
            },
            // The claim that follows tells more of it.
            Err(error) => drop(self.failed(error)),
        }
    }
}

const EVERY: Duration = Duration::from_secs(60);

/// After that long without a sign of life of any worker an alert is given.
pub(crate) const SILENCE: Duration = Duration::from_secs(10 * 60);

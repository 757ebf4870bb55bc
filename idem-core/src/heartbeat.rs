//! The heartbeat: one thread that renews the leases of all live claims.
//!
//! A thread of its own, since a handler that blocks the application's runtime must not lose its lease to a rival
//! for it; one statement for all, since the number of claims must not be a number of round trips.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;

use crate::events::{Event, Observer};
use crate::record::Ownership;
use crate::rules::Rules;
use crate::store::{Pulse, Store, StoreError};

/// One claim as the heartbeat sees it.
pub(crate) struct Live {
    pub(crate) ownership: Ownership,
    lease: Duration,
    beat: Duration,
    begun: Instant,
    max_run: Duration,
    lost: Mutex<Option<oneshot::Sender<()>>>,
    on_lost: Shared<oneshot::Receiver<()>>,
    ended: AtomicBool,
}

impl Live {
    pub(crate) fn new(ownership: Ownership, rules: &Rules) -> Self {
        let (lost, on_lost) = oneshot::channel();
        Self {
            ownership,
            lease: rules.lease,
            beat: rules.beat(),
            begun: Instant::now(),
            max_run: rules.max_run,
            lost: Mutex::new(Some(lost)),
            on_lost: on_lost.shared(),
            ended: AtomicBool::new(false),
        }
    }

    /// Somebody else owns the record now, or nobody.
    pub(crate) fn lose(&self) {
        if let Some(lost) = lock(&self.lost).take() {
            // Nobody listening is the usual case.
            let _ = lost.send(());
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.lost).is_none()
    }

    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.on_lost.clone().map(|_| ())
    }

    /// The last write is done: no beat any more.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn beats(&self) -> bool {
        !self.ended.load(Ordering::Relaxed) && !self.is_lost()
    }

    fn ran(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }
}

/// The thread's handle; the thread ends with it.
pub(crate) struct Heartbeat {
    shared: Arc<Beats>,
}

struct Beats {
    store: Arc<dyn Store>,
    observer: Arc<dyn Observer>,
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

#[derive(Default)]
struct Schedule {
    entries: Vec<Entry>,
    /// With so many entries, those of claims that have ended are taken out.
    crowded: usize,
    /// When the thread wakes by itself; `None` where it waits for a claim.
    alarm: Option<Instant>,
    started: bool,
    stopped: bool,
}

struct Entry {
    claim: Weak<Live>,
    due: Instant,
    /// It ran for too long: its lease is not renewed any more, and it is told when somebody has taken over.
    given_up: bool,
}

impl Heartbeat {
    pub(crate) fn new(store: Arc<dyn Store>, observer: Arc<dyn Observer>) -> Self {
        let (schedule, changed) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Beats { store, observer, schedule, changed }) }
    }

    /// Renews the claim's lease from now on, until it ends, is lost, is dropped, or ran for too long; then only looks
    /// whether it is lost.
    pub(crate) fn watch(&self, claim: &Arc<Live>) {
        let due = Instant::now() + claim.beat;
        let mut schedule = lock(&self.shared.schedule);
        schedule.push(Entry { claim: Arc::downgrade(claim), due, given_up: false });
        // Most claims end long before their first beat: none of them wakes the thread that need not.
        let wakes = schedule.alarm.is_none_or(|alarm| due < alarm);
        if !schedule.started {
            schedule.started = true;
            let beats = Arc::clone(&self.shared);
            if let Err(error) = std::thread::Builder::new().name("idem-heartbeat".into()).spawn(move || beats.run()) {
                schedule.started = false;
                tracing::error!(%error, "no thread for the heartbeat: leases are not renewed");
            }
        }
        drop(schedule);
        if wakes {
            self.shared.changed.notify_one();
        }
    }
}

impl Schedule {
    /// Adds an entry. Those of ended claims go when there are twice as many as were live the last time, so that
    /// neither their number nor the search for them grows with the rate of requests.
    fn push(&mut self, entry: Entry) {
        if self.entries.len() >= self.crowded {
            self.entries.retain(|entry| entry.claim.upgrade().is_some_and(|claim| claim.beats()));
            self.crowded = (self.entries.len() * 2).max(FEW);
        }
        self.entries.push(entry);
    }

    /// Takes out what need not beat any more, and gives those claims whose work has run for too long by now.
    fn give_up(&mut self, now: Instant) -> Vec<Arc<Live>> {
        let mut hung = Vec::new();
        self.entries.retain_mut(|entry| {
            let Some(claim) = entry.claim.upgrade().filter(|claim| claim.beats()) else { return false };
            if !entry.given_up && claim.ran(now) >= claim.max_run {
                entry.given_up = true;
                hung.push(claim);
            }
            true
        });
        hung
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        lock(&self.shared.schedule).stopped = true;
        self.shared.changed.notify_one();
    }
}

impl Beats {
    fn run(&self) {
        let mut pulse: Option<Box<dyn Pulse>> = None;
        while let Some(due) = self.wait() {
            let claims = due.live.len() + due.given_up.len();
            // A store that panics must not end all heartbeats.
            match catch_unwind(AssertUnwindSafe(|| self.beat(&mut pulse, &due))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => {
                    let (code, error) = (error.code(), &error as &dyn std::error::Error);
                    tracing::warn!(code, error, claims, "a heartbeat failed; the next one tries again");
                }
                Err(_) => tracing::error!(claims, "a heartbeat panicked; the next one tries again"),
            }
            // The connection may be what broke: the next beat opens another.
            pulse = None;
        }
    }

    fn beat(&self, pulse: &mut Option<Box<dyn Pulse>>, due: &Due) -> Result<(), StoreError> {
        let pulse = match pulse {
            Some(pulse) => pulse,
            None => pulse.insert(self.store.pulse()?),
        };
        if !due.live.is_empty() {
            let live: Vec<_> = due.live.iter().map(|claim| (claim.ownership.clone(), claim.lease)).collect();
            tell(&due.live, pulse.beat(&live)?);
        }
        if !due.given_up.is_empty() {
            let owners: Vec<_> = due.given_up.iter().map(|claim| claim.ownership.clone()).collect();
            tell(&due.given_up, pulse.owns(&owners)?);
        }
        Ok(())
    }

    fn alert(&self, hung: &Live, now: Instant) {
        let (operation, ran) = (hung.ownership.scope.operation(), hung.ran(now));
        self.observer.observe(&Event::Hung { operation, ran });
        tracing::error!(
            operation,
            ?ran,
            "work has run for longer than max_run: its lease is not renewed any more, and another may take over"
        );
    }

    /// Sleeps until some claims are due, and gives them; `None` when the engine is gone.
    fn wait(&self) -> Option<Due> {
        let mut schedule = lock(&self.schedule);
        loop {
            if schedule.stopped {
                return None;
            }
            let now = Instant::now();
            let hung = schedule.give_up(now);
            if !hung.is_empty() {
                // Without the lock: no claim waits for whoever listens.
                drop(schedule);
                hung.iter().for_each(|claim| self.alert(claim, now));
                schedule = lock(&self.schedule);
                continue;
            }
            let next = schedule.entries.iter().map(|entry| entry.due).min();
            let mut due = Due::default();
            if next.is_some_and(|next| next <= now) {
                for entry in &mut schedule.entries {
                    // Who would be due soon comes along, so that all live claims share one statement.
                    if let Some(claim) = entry.claim.upgrade().filter(|claim| entry.due <= now + claim.beat / 2) {
                        entry.due = now + claim.beat;
                        if entry.given_up { &mut due.given_up } else { &mut due.live }.push(claim);
                    }
                }
            }
            if !(due.live.is_empty() && due.given_up.is_empty()) {
                return Some(due);
            }
            schedule.alarm = next;
            schedule = match next {
                Some(next) => {
                    let waited = self.changed.wait_timeout(schedule, next.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(schedule).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The claims of one beat.
#[derive(Default)]
struct Due {
    /// Whose leases are renewed.
    live: Vec<Arc<Live>>,
    /// Who are only looked at.
    given_up: Vec<Arc<Live>>,
}

/// Tells those that own their records no longer.
fn tell(claims: &[Arc<Live>], owns: Vec<bool>) {
    for (claim, owns) in claims.iter().zip(owns) {
        // A claim that ended while the beat was under way is not lost, it is done.
        if !owns && claim.beats() {
            claim.lose();
        }
    }
}

const FEW: usize = 64;

/// What these locks guard is whole between any two statements, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

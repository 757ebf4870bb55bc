//! Forgetting what need not be known any more, in small batches.

use std::time::Duration;

use crate::engine::Engine;
use crate::events::Event;
use crate::store::{StoreError, SweepOrder, Swept};

/// How [`Engine::sweep`] goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// At most so many records of each kind in one batch. Small batches hold few locks, and each for a short time.
    pub batch: u32,
    /// At most so many batches in one round.
    pub batches: u32,
    /// The pause between two batches.
    pub pause: Duration,
    /// Whether records are forgotten altogether whose calls were ever announced. Then nothing but the business rows
    /// protects a key that is used again.
    pub purge_tombstones: bool,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { batch: 100, batches: 1000, pause: Duration::from_millis(20), purge_tombstones: false }
    }
}

impl Engine {
    /// One batch of cleaning: answers whose window is over (T16), metadata whose time is over (T17), bodies whose
    /// retention is over. Never a record in progress, unknown, or with an open call that may be run again. Any number
    /// of nodes may do it at once.
    ///
    /// # Errors
    /// [`StoreError`]; the next round goes on.
    pub async fn sweep_once(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let order = SweepOrder { limit: sweep.batch, purge_tombstones: sweep.purge_tombstones };
        let swept = self.store().sweep(order).await?;
        self.observe(&Event::Swept(swept));
        Ok(swept)
    }

    /// Batches with pauses, until one finds nothing any more, or the round's bound is reached; the sum of all. (A batch
    /// that took less than it might is no end: what it expired may be gone with the next one.)
    ///
    /// # Errors
    /// [`StoreError`]; what was swept before it stays swept.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let mut sum = Swept::default();
        for batch in 0..sweep.batches {
            if batch > 0 {
                self.clock().sleep(sweep.pause).await;
            }
            let swept = self.sweep_once(sweep).await?;
            sum.bodies += swept.bodies;
            sum.expired += swept.expired;
            sum.purged += swept.purged;
            if swept == Swept::default() {
                break;
            }
        }
        Ok(sum)
    }
}

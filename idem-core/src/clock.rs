//! Time and chance as the engine sees them: waits and jitter. What a record says of time is the store's.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;

/// The time of this process, waits, and jitter. Tests give a clock of their own.
#[async_trait]
pub trait Clock: Send + Sync {
    /// What time it is. Only the memory store, which has no clock of its own, dates records by it.
    fn now(&self) -> SystemTime;

    /// Waits.
    async fn sleep(&self, span: Duration);

    /// A number from 0 to 1 (1 excluded), evenly spread, for jitter.
    fn fraction(&self) -> f64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    async fn sleep(&self, span: Duration) {
        futures_timer::Delay::new(span).await;
    }

    fn fraction(&self) -> f64 {
        fastrand::f64()
    }
}

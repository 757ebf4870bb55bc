//! The runtime's clock as idem's: with a paused runtime, hours pass at once and every run is alike.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_core::Clock;
use tokio::time::Instant;

/// Time as tokio tells it.
pub(crate) struct TokioClock {
    start: Instant,
}

impl TokioClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.start.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn fraction(&self) -> f64 {
        0.5
    }
}

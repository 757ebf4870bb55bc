//! How much work runs in this process, and the end of it.

use std::time::Duration;

use tokio::sync::watch;

/// Counts running work.
#[derive(Debug)]
pub(crate) struct Gate {
    running: watch::Sender<usize>,
    most: usize,
}

/// One piece of running work; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Running(watch::Sender<usize>);

/// Work was still running when the patience of [`Idem::drain`](crate::Idem::drain) was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} requests still run; their keys are free to be taken over after their lease")]
pub struct StillRunning {
    /// How many requests.
    pub count: usize,
}

impl Gate {
    pub(crate) fn new(most: usize) -> Self {
        Self { running: watch::Sender::new(0), most }
    }

    /// Room for one more, if there is any.
    pub(crate) fn enter(&self) -> Option<Running> {
        let entered = self.running.send_if_modified(|running| {
            let room = *running < self.most;
            *running += usize::from(room);
            room
        });
        entered.then(|| Running(self.running.clone()))
    }

    pub(crate) async fn drain(&self, patience: Duration) -> Result<(), StillRunning> {
        let mut running = self.running.subscribe();
        match tokio::time::timeout(patience, running.wait_for(|&running| running == 0)).await {
            // An error would say that the gate is gone, which is borrowed here.
            Ok(_) => Ok(()),
            Err(_) => Err(StillRunning { count: *self.running.borrow() }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

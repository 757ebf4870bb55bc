//! The loops: recovery and sweeping, with jitter, a sign of life, and a clean end. Feature `tokio`.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::{Engine, SILENCE};
use crate::events::Event;
use crate::retention::Sweep;

/// How often the loops run, and how much they do at once.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The pause between two rounds of recovery, before jitter of up to a half. Default 5 s.
    pub recover_every: Duration,
    /// Records read at once in a round of recovery. Default 100.
    pub recover_batch: u32,
    /// Records looked after at the same time: most of it is waiting for providers. Default 8.
    pub recover_at_once: usize,
    /// The pause between two rounds of sweeping, before jitter of up to a half. Default 60 s.
    pub sweep_every: Duration,
    /// How sweeping goes about it.
    pub sweep: Sweep,
    /// After that long without a sign of life of any worker a warning is given. Default 10 min.
    pub silence: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            recover_every: Duration::from_secs(5),
            recover_batch: 100,
            recover_at_once: 8,
            sweep_every: Duration::from_secs(60),
            sweep: Sweep::default(),
            silence: SILENCE,
        }
    }
}

/// Running loops. Dropping it lets them go on; [`Self::stop`] ends them cleanly.
#[derive(Debug)]
pub struct Worker {
    stop: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
}

impl Worker {
    /// Starts the loops on the present tokio runtime. Any number of nodes may run them over one store. A round that panics
    /// is told to the observer, and the loop goes on after its pause.
    ///
    /// ```no_run
    /// # async fn run(engine: idem_core::Engine) {
    /// let worker = idem_core::worker::Worker::start(engine, Default::default());
    /// // … serve …
    /// worker.stop().await;
    /// # }
    /// ```
    #[must_use]
    pub fn start(engine: Engine, options: WorkerOptions) -> Self {
        let (stop, stopped) = watch::channel(false);
        let recovering = tokio::spawn(recover(engine.clone(), options.clone(), stopped.clone()));
        let sweeping = tokio::spawn(sweep(engine, options, stopped));
        Self { stop, loops: vec![recovering, sweeping] }
    }

    /// Ends the loops. Records that are being asked about are settled first, for at most the longest
    /// [`ask_lease`](crate::Rules::ask_lease); then what is left of them is dropped, and another worker goes on with it
    /// when their leases are over. No other is begun.
    pub async fn stop(self) {
        // Loops that have ended already need not hear it.
        let _ = self.stop.send(true);
        for ending in self.loops {
            if let Err(error) = ending.await {
                tracing::error!(%error, "a worker's loop ended badly");
            }
        }
    }
}

async fn recover(engine: Engine, options: WorkerOptions, mut stopped: watch::Receiver<bool>) {
    let mut more = false;
    // A page after another, and the pause after a whole round.
    while more || pause(&engine, options.recover_every, &mut stopped).await {
        let mut told = stopped.clone();
        let late = async {
            told_to_stop(&mut told).await;
            tokio::time::sleep(engine.longest_ask_lease()).await;
        };
        more = tokio::select! {
            looked = supervised(&engine, "recovery", recover_page(&engine, &options, &stopped)) => looked == Some(true),
            () = late => return,
        };
        if *stopped.borrow() {
            return;
        }
    }
}

/// Whether there is more of the round.
async fn recover_page(engine: &Engine, options: &WorkerOptions, stopped: &watch::Receiver<bool>) -> bool {
    match engine.store().silence().await {
        Ok(Some(silence)) if silence >= options.silence => {
            engine.observe(&Event::NoWorker { silence });
            tracing::warn!(?silence, "no worker has looked after the records for that long");
        }
        Ok(_) => {}
        Err(error) => engine.store_failed(&error),
    }
    match engine.store().sign_of_life().await {
        Ok(()) => engine.observe(&Event::WorkerSeen { silence: Duration::ZERO }),
        Err(error) => engine.store_failed(&error),
    }
    let is_stopped = || *stopped.borrow();
    match engine.recover_page(options.recover_batch, options.recover_at_once, &is_stopped).await {
        Ok(recovered) => recovered.more,
        Err(error) => {
            engine.store_failed(&error);
            false
        }
    }
}

async fn sweep(engine: Engine, options: WorkerOptions, mut stopped: watch::Receiver<bool>) {
    while pause(&engine, options.sweep_every, &mut stopped).await {
        let sweeping = async {
            if let Err(error) = engine.sweep(&options.sweep).await {
                engine.store_failed(&error);
            }
        };
        tokio::select! {
            _ = supervised(&engine, "sweep", sweeping) => {}
            // What a batch has swept is swept, and the next worker goes on.
            () = told_to_stop(&mut stopped) => return,
        }
    }
}

/// Runs a round; `None` where it panicked.
async fn supervised<T>(engine: &Engine, round: &'static str, run: impl Future<Output = T>) -> Option<T> {
    let ran = AssertUnwindSafe(run).catch_unwind().await;
    if ran.is_err() {
        engine.observe(&Event::WorkerBroke { round });
        tracing::error!(round, "a round of a worker panicked; the next one tries again");
    }
    ran.ok()
}

/// Waits from the whole span to one and a half of it, so that nodes that were started together drift apart; false
/// when the loop has to end.
async fn pause(engine: &Engine, span: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    let span = span.mul_f64(1.0 + engine.clock().fraction() / 2.0);
    tokio::select! {
        () = told_to_stop(stopped) => false,
        () = tokio::time::sleep(span) => true,
    }
}

/// Never, where the worker's handle is gone: the loops go on until the runtime ends.
async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    if stopped.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

//! The loops: recovery and sweeping, with jitter, a sign of life, and a clean end. Feature `tokio`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::events::Event;
use crate::retention::Sweep;

/// How often the loops run, and how much they do at once.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The pause between two rounds of recovery, before jitter of up to a half. Default 5 s.
    pub recover_every: Duration,
    /// Records read at once in a round of recovery. Default 100.
    pub recover_batch: u32,
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
            sweep_every: Duration::from_secs(60),
            sweep: Sweep::default(),
            silence: Duration::from_secs(10 * 60),
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
    /// Starts the loops on the present tokio runtime. Any number of nodes may run them over one store.
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

    /// Ends the loops after what they are doing.
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
    while pause(&engine, options.recover_every, &mut stopped).await {
        match engine.store().silence().await {
            Ok(Some(silence)) if silence >= options.silence => {
                engine.observe(&Event::NoWorker { silence });
                tracing::warn!(?silence, "no worker has looked after the records for that long");
            }
            Ok(_) => {}
            Err(error) => engine.store_failed(&error),
        }
        if let Err(error) = engine.store().sign_of_life().await {
            engine.store_failed(&error);
        }
        if let Err(error) = engine.recover_once(options.recover_batch).await {
            engine.store_failed(&error);
        }
    }
}

async fn sweep(engine: Engine, options: WorkerOptions, mut stopped: watch::Receiver<bool>) {
    while pause(&engine, options.sweep_every, &mut stopped).await {
        if let Err(error) = engine.sweep(&options.sweep).await {
            engine.store_failed(&error);
        }
    }
}

/// Waits from the whole span to one and a half of it, so that nodes that were started together drift apart; false
/// when the loop has to end.
async fn pause(engine: &Engine, span: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    let span = span.mul_f64(1.0 + engine.clock().fraction() / 2.0);
    tokio::select! {
        () = tokio::time::sleep(span) => true,
        // An error means that the worker's handle is gone: the loops go on until the runtime ends.
        changed = stopped.changed() => if changed.is_err() { tokio::time::sleep(span).await; true } else { false },
    }
}

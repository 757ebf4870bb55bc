//! The service as a whole: its databases, its engine, its socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use idem_axum::{CallClass, Idem};
use idem_core::events::MetricsObserver;
use idem_core::worker::{Worker, WorkerOptions};
use idem_sqlx::SqliteStore;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api;
use crate::ledger::Ledger;
use crate::merchant::Merchant;
use crate::metrics;
use crate::payment::CreatePayment;
use crate::provider::{self, Provider};

/// What the handlers share.
#[derive(Debug, Clone, FromRef)]
pub struct App {
    /// idem.
    pub idem: Idem,
    /// The service's own rows.
    pub ledger: Arc<Ledger>,
    /// The world outside.
    pub provider: Arc<Provider>,
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    app: App,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
    worker: Worker,
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder of the databases.
    #[error("the data folder {} cannot be made", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The records.
    #[error("the idempotency store cannot be opened")]
    Store(#[from] idem_sqlx::Error),
    /// The service's or the provider's rows.
    #[error("a database cannot be opened")]
    Database(#[from] sqlx::Error),
    /// The set-up.
    #[error("idem is set up wrongly")]
    Config(#[from] idem_core::ConfigError),
    /// What this build hashes.
    #[error("yesterday's retries would not be recognised")]
    Contract(#[from] idem_core::RegisterError),
    /// The socket.
    #[error("{address} cannot be listened on")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

impl Service {
    /// Listens, and opens the databases in `data`.
    ///
    /// # Errors
    /// [`StartError`]; a socket that is taken leaves no files behind.
    pub async fn start(listen: SocketAddr, data: &Path) -> Result<Self, StartError> {
        let refused = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        std::fs::create_dir_all(data).map_err(|source| StartError::Folder { folder: data.to_owned(), source })?;
        let store = SqliteStore::open(data.join("idem.sqlite")).await?;
        // Before the first event, which would be lost.
        metrics::numbers();
        let idem = Idem::builder(store)
            .scope_from::<Merchant, App>()
            .namespace("payments")
            .observer(MetricsObserver)
            .call::<CreatePayment>("charge", CallClass::Dedupes { retention: provider::RETENTION })
            .build()?;
        // Before traffic is taken: the records in the store were written by a contract, maybe of another release.
        idem.engine().register::<CreatePayment>().await?;
        let app = App {
            idem,
            ledger: Arc::new(Ledger::open(&data.join("payments.sqlite")).await?),
            provider: Arc::new(Provider::open(&data.join("provider.sqlite")).await?),
        };
        let (stop, stopped) = oneshot::channel();
        let router = api::router(app.clone());
        // A dropped sender ends the service too: nobody is left who could.
        let stopped = async { drop(stopped.await) };
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
        // Settles what no client comes back for, and forgets what need not be known any more.
        let worker = Worker::start(app.idem.engine().clone(), WorkerOptions::default());
        Ok(Self { address, app, stop, server: tokio::spawn(server.into_future()), worker })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its handlers share; the demo counts the provider's charges.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Takes no more requests, answers those that are under way, and finishes the work whose clients have gone; each
    /// within `patience`. What is not done by then is taken over by the next request once its lease is over.
    pub async fn stop(self, patience: Duration) {
        drop(self.stop);
        match tokio::time::timeout(patience, self.server).await {
            Ok(Ok(Err(error))) => tracing::error!(%error, "the server ended badly"),
            Ok(Err(error)) => tracing::error!(%error, "the server panicked"),
            Ok(Ok(Ok(()))) => {}
            Err(_) => tracing::warn!("some connections are still open: they are cut"),
        }
        if let Err(error) = self.app.idem.drain(patience).await {
            tracing::warn!(%error, "some work is still running: it is left to the next request");
        }
        self.worker.stop().await;
    }
}

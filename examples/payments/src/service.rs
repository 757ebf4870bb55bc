//! The service as a whole: its databases, its engine, its socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use idem_axum::Idem;
use idem_core::events::{MetricsObserver, TracingObserver};
use idem_core::worker::Worker;
use idem_sqlx::SqliteStore;
use idem_sqlx::outbox::Relay;
use idem_sqlx::webhook::{Endpoint, InvalidEndpoint};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api;
use crate::events::Bus;
use crate::ledger::Ledger;
use crate::merchant::Merchant;
use crate::metrics;
use crate::office::Office;
use crate::payment::CreatePayment;
use crate::provider::{Kind, Provider};
use crate::reconcile;
use crate::setup::Setup;
use crate::transfer::CreateTransfer;

/// What the handlers share.
#[derive(Debug, Clone, FromRef)]
pub struct App {
    /// idem.
    pub idem: Idem,
    /// Where its records are.
    pub store: SqliteStore,
    /// The service's own rows.
    pub ledger: Arc<Ledger>,
    /// Where the provider's webhooks arrive.
    pub webhooks: Arc<Endpoint>,
    /// The world outside.
    pub provider: Arc<Provider>,
    /// Another service, which hears of payments.
    pub office: Arc<Office>,
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    app: App,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
    worker: Worker,
    stop_relay: oneshot::Sender<()>,
    relay: JoinHandle<()>,
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
    /// Where webhooks arrive.
    #[error("the endpoint of webhooks is set up wrongly")]
    Webhooks(#[from] InvalidEndpoint),
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
    pub async fn start(listen: SocketAddr, data: &Path, setup: &Setup) -> Result<Self, StartError> {
        let refused = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        std::fs::create_dir_all(data).map_err(|source| StartError::Folder { folder: data.to_owned(), source })?;
        let ledger = Ledger::open(&data.join("payments.sqlite")).await?;
        let provider = Provider::open(&data.join("provider.sqlite"), setup.provider, setup.time_out).await?;
        let provider = Arc::new(provider);
        // In the ledger's own file: rows and records are written in one transaction.
        let store = SqliteStore::beside(ledger.pool()).await?;
        // Before the first event, which would be lost.
        metrics::numbers();
        let mut idem = Idem::builder(store.clone())
            .scope_from::<Merchant, App>()
            .namespace("payments")
            .rules(setup.rules())
            .observer((MetricsObserver, TracingObserver))
            .call::<CreatePayment>("charge", setup.class());
        for call in TRANSFER_CALLS {
            idem = idem.call::<CreateTransfer>(call, setup.class());
        }
        if setup.provider != Kind::Neither {
            let payments = reconcile::Payments(Arc::clone(&provider));
            idem = idem.reconciler::<CreatePayment, _, _>("charge", store.clone(), payments);
            for call in TRANSFER_CALLS {
                let transfers = reconcile::Transfers(Arc::clone(&provider));
                idem = idem.reconciler::<CreateTransfer, _, _>(call, store.clone(), transfers);
            }
        }
        let idem = idem.build()?;
        // Before traffic is taken: the records in the store were written by a contract, maybe of another release.
        idem.engine().register::<CreatePayment>().await?;
        idem.engine().register::<CreateTransfer>().await?;
        let office = Arc::new(Office::open(&data.join("office.sqlite")).await?);
        let relay = Relay::new(store.clone(), Bus(Arc::clone(&office)));
        let webhooks = Arc::new(Endpoint::new("provider", TOLERANCE, KNOWN_AGAIN)?);
        let app = App { idem, store, ledger: Arc::new(ledger), webhooks, provider, office };
        let (stop, stopped) = oneshot::channel();
        let router = api::router(app.clone());
        // A dropped sender ends the service too: nobody is left who could.
        let stopped = async { drop(stopped.await) };
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
        // Settles what no client comes back for, and forgets what need not be known any more.
        let worker = Worker::start(app.idem.engine().clone(), setup.worker());
        // Publishes what was committed with a payment.
        let (stop_relay, stopped) = oneshot::channel::<()>();
        let relay = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
        let server = tokio::spawn(server.into_future());
        Ok(Self { address, app, stop, server, worker, stop_relay, relay })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its handlers share.
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
        drop(self.stop_relay);
        if let Err(error) = self.relay.await {
            tracing::error!(%error, "the relay ended badly");
        }
    }
}

/// The charges of a transfer.
const TRANSFER_CALLS: [&str; 3] = ["debit", "credit", "refund"];

/// How far from now a webhook may have been signed.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// How long its event is known again; the provider sends one for days.
const KNOWN_AGAIN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

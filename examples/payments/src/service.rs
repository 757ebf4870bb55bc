//! The service as a whole: its databases, its engine, its socket.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::extract::FromRef;
use idem_axum::{CallClass, Idem};
use idem_sqlx::SqliteStore;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api;
use crate::ledger::Ledger;
use crate::merchant::Merchant;
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
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder of the databases.
    #[error("the data folder cannot be made")]
    Folder(#[source] std::io::Error),
    /// The records.
    #[error("the idempotency store cannot be opened")]
    Store(#[from] idem_sqlx::Error),
    /// The service's or the provider's rows.
    #[error("a database cannot be opened")]
    Database(#[from] sqlx::Error),
    /// The set-up.
    #[error("idem is set up wrongly")]
    Config(#[from] idem_core::ConfigError),
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
    /// Opens the databases in `data` and listens.
    pub async fn start(listen: SocketAddr, data: &Path) -> Result<Self, StartError> {
        std::fs::create_dir_all(data).map_err(StartError::Folder)?;
        let store = SqliteStore::open(data.join("idem.sqlite")).await?;
        let idem = Idem::builder(store)
            .scope_from::<Merchant, App>()
            .namespace("payments")
            .call::<CreatePayment>("charge", CallClass::Dedupes { retention: provider::RETENTION })
            .build()?;
        let app = App {
            idem,
            ledger: Arc::new(Ledger::open(&data.join("payments.sqlite")).await?),
            provider: Arc::new(Provider::open(&data.join("provider.sqlite")).await?),
        };
        let refused = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (stop, stopped) = oneshot::channel();
        let router = api::router(app.clone());
        // A dropped sender ends the service too: nobody is left who could.
        let stopped = async { drop(stopped.await) };
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
        Ok(Self { address, app, stop, server: tokio::spawn(server.into_future()) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its handlers share; the demo counts the provider's charges.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Answers what is under way, and ends.
    pub async fn stop(self) {
        drop(self.stop);
        if let Ok(Err(error)) = self.server.await {
            tracing::error!(%error, "the server ended badly");
        }
    }
}

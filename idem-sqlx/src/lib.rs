//! Durable stores for `idem-core` over sqlx: they remember what a key meant when the process does not.
//!
//! | feature | store | for |
//! | --- | --- | --- |
//! | `sqlite` (default) | [`SqliteStore`] | one machine: a file, no server |
//! | `postgres` | [`PgStore`] | many nodes on one PostgreSQL |
//!
//! TLS to PostgreSQL: the features `tls-rustls` (roots that are compiled in) and `tls-rustls-native-roots` (those of the
//! system); or sqlx's `tls-native-tls`, turned on in the application. Without one of them a URL that asks for TLS is
//! refused.
//!
//! ```
//! # async fn open(dir: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! use idem_core::Engine;
//! use idem_sqlx::SqliteStore;
//!
//! let store = SqliteStore::open(dir.join("idem.db")).await?;
//! let engine = Engine::builder(store).build()?;
//! # drop(engine); Ok(()) }
//! # let dir = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(open(dir.path()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside the records, on both databases: [`outbox`] for events that leave with a business transaction, [`inbox`] for
//! messages that must have one effect, [`webhook`] for what a provider sends.

mod error;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod inbox;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod migration;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod outbox;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tables;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod webhook;

pub use error::Error;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use migration::SchemaVersion;
#[cfg(feature = "postgres")]
pub use postgres::{PgOptions, PgStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use tables::Tables;

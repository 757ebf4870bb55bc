//! Which database, by its URL, and the engine over it.

use std::fmt;
use std::str::FromStr;

use idem_core::{Engine, EngineBuilder, Store};
use idem_sqlx::{PgOptions, PgStore, SchemaVersion, SqliteOptions, SqliteStore};

use crate::error::AdminError;

/// A database that may have idem's tables.
pub(crate) enum Database {
    Sqlite(SqliteOptions),
    Postgres(Box<PgOptions>),
}

impl FromStr for Database {
    type Err = AdminError;

    fn from_str(url: &str) -> Result<Self, AdminError> {
        if url.starts_with("sqlite:") {
            Ok(Self::Sqlite(SqliteOptions::new(url)))
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Ok(Self::Postgres(Box::new(PgOptions::new(url)?)))
        } else {
            Err(AdminError::Url)
        }
    }
}

impl Database {
    /// An engine over the records. It declares no call and claims nothing: a person's part needs neither.
    pub(crate) async fn engine(&self) -> Result<Engine, AdminError> {
        self.built(|builder| builder).await
    }

    /// The same, with rules of its own.
    pub(crate) async fn built(
        &self,
        set_up: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Result<Engine, AdminError> {
        let builder = match self {
            Self::Sqlite(options) => Engine::builder(SqliteStore::connect(options.clone()).await?),
            Self::Postgres(options) => Engine::builder(PgStore::connect((**options).clone()).await?),
        };
        Ok(set_up(builder).build()?)
    }

    /// The store itself, for what no record is concerned in.
    pub(crate) async fn store(&self) -> Result<Box<dyn Store>, AdminError> {
        Ok(match self {
            Self::Sqlite(options) => Box::new(SqliteStore::connect(options.clone()).await?),
            Self::Postgres(options) => Box::new(PgStore::connect((**options).clone()).await?),
        })
    }

    pub(crate) async fn schema_version(&self) -> Result<SchemaVersion, AdminError> {
        Ok(match self {
            Self::Sqlite(options) => SqliteStore::schema_version(options.clone()).await?,
            Self::Postgres(options) => PgStore::schema_version((**options).clone()).await?,
        })
    }

    pub(crate) async fn migrate(&self) -> Result<(), AdminError> {
        match self {
            Self::Sqlite(options) => SqliteStore::migrate(options.clone()).await?,
            Self::Postgres(options) => PgStore::migrate((**options).clone()).await?,
        }
        Ok(())
    }
}

/// Without the URL, which may have a password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        })
    }
}

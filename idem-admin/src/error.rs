//! What goes wrong, with a stable code for scripts, and what the program ends with.

use std::error::Error;
use std::process::ExitCode;

use idem_core::operator::ResolveError;
use idem_core::{ConfigError, StoreError};
use serde_json::json;

/// Why a command was not done, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// Nobody said where.
    #[error("say which database: IDEM_DATABASE_URL, or --database")]
    NoDatabase,
    /// The URL, which may have a password, is not repeated.
    #[error("the database's URL begins with neither `postgres://` nor `sqlite:`")]
    Url,
    /// An argument that clap takes for text.
    #[error("{argument}: {reason}")]
    Argument {
        /// Which.
        argument: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A database that cannot be opened, or has no schema of this release.
    #[error("the database cannot be used")]
    Database(#[from] idem_sqlx::Error),
    /// One that failed on the way.
    #[error("the database failed")]
    Store(#[from] StoreError),
    /// Headers that are never kept.
    #[error("the answer cannot be kept")]
    Config(#[from] ConfigError),
    /// Nothing to look at.
    #[error("there is no such record")]
    NoRecord,
    /// A record, or a verdict, that does not allow it.
    #[error("the record was not decided on")]
    Refused(#[source] ResolveError),
    /// It moves money, or may.
    #[error("{0}")]
    Unconfirmed(String),
    /// Some of many.
    #[error("{refused} of {all} records were not decided on")]
    SomeRefused {
        /// How many.
        refused: usize,
        /// Of how many.
        all: usize,
    },
    /// `check` found something.
    #[error("{0}")]
    NotInOrder(String),
    /// The answer could not be written where it was wanted.
    #[error("the answer cannot be shown")]
    Output(#[from] serde_json::Error),
}

impl AdminError {
    /// A stable name for scripts.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoDatabase => "ADMIN_NO_DATABASE",
            Self::Url => "ADMIN_DATABASE_URL",
            Self::Argument { .. } => "ADMIN_ARGUMENT",
            Self::Database(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Config(error) => error.code(),
            Self::NoRecord => "ADMIN_NO_RECORD",
            Self::Refused(error) => error.code(),
            Self::Unconfirmed(_) => "ADMIN_UNCONFIRMED",
            Self::SomeRefused { .. } => "ADMIN_SOME_REFUSED",
            Self::NotInOrder(_) => "ADMIN_NOT_IN_ORDER",
            Self::Output(_) => "ADMIN_OUTPUT",
        }
    }

    /// What the program ends with; `docs/operations.md` has the table.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Database(_) | Self::Store(_) | Self::Output(_) => 1,
            // As clap's own.
            Self::NoDatabase | Self::Url | Self::Argument { .. } | Self::Config(_) => 2,
            Self::NoRecord => 3,
            Self::Refused(ResolveError::Store(_)) => 1,
            Self::Refused(_) | Self::Unconfirmed(_) => 4,
            Self::SomeRefused { .. } => 5,
            Self::NotInOrder(_) => 6,
        })
    }

    /// Tells it, with its causes.
    pub(crate) fn show(&self, as_json: bool) {
        let mut causes = Vec::new();
        let mut cause = self.source();
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        if as_json {
            eprintln!("{}", json!({ "error": { "code": self.code(), "message": self.to_string(), "causes": causes } }));
            return;
        }
        eprintln!("idem-admin: {self} [{}]", self.code());
        for cause in causes {
            eprintln!("  because: {cause}");
        }
    }
}

/// A record that is not there is that, whoever says it.
impl From<ResolveError> for AdminError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::NoRecord => Self::NoRecord,
            error => Self::Refused(error),
        }
    }
}

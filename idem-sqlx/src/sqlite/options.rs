//! Which file, and how it is opened.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use crate::error::Error;

/// Which file, and how it is opened.
///
/// ```
/// use std::time::Duration;
/// use idem_sqlx::SqliteOptions;
///
/// let options = SqliteOptions::new("payments.db").readers(8).busy_timeout(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    location: PathBuf,
    readers: u32,
    busy_timeout: Duration,
    application: Option<SqlitePool>,
}

impl SqliteOptions {
    /// The file at `location`: a path, or a URL as `sqlite:payments.db` or `sqlite:///var/lib/payments.db`.
    #[must_use]
    pub fn new(location: impl AsRef<Path>) -> Self {
        Self {
            location: location.as_ref().to_owned(),
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            application: None,
        }
    }

    /// The file of the application's own pool; see [`SqliteStore::beside`](crate::SqliteStore::beside).
    #[must_use]
    pub fn beside(pool: &SqlitePool) -> Self {
        let options = pool.connect_options();
        Self { application: Some(pool.clone()), ..Self::new(options.get_filename()) }
    }

    /// How many connections read beside the writer, at least 1. Default 4.
    #[must_use]
    pub fn readers(mut self, connections: u32) -> Self {
        self.readers = connections.max(1);
        self
    }

    /// How long a write waits while another connection or process writes, before it is given up as
    /// [`Error::Locked`]. Default 5 s, at most a day.
    #[must_use]
    pub fn busy_timeout(mut self, span: Duration) -> Self {
        self.busy_timeout = span.min(Duration::from_secs(24 * 60 * 60));
        self
    }

    pub(super) fn application(&self) -> Option<&SqlitePool> {
        self.application.as_ref()
    }

    pub(super) fn pool_size(&self) -> u32 {
        self.readers
    }

    pub(super) fn patience(&self) -> Duration {
        self.busy_timeout
    }

    /// The file, where these options name one.
    pub(super) fn file(&self) -> Result<PathBuf, Error> {
        let Some(text) = self.location.to_str() else { return Ok(self.location.clone()) };
        let refused = |reason: &str| Error::Url { url: text.to_owned(), reason: reason.to_owned() };
        let (file, parameters) = match text.strip_prefix("sqlite:") {
            Some(url) => {
                let (file, parameters) = url.split_once('?').unwrap_or((url, ""));
                (file.strip_prefix("//").unwrap_or(file), parameters)
            }
            None => (text, ""),
        };
        // SQLite takes an empty name for a temporary database, gone with its connection.
        if file.is_empty()
            || file.contains(":memory:")
            || file.starts_with("file:sqlx-in-memory")
            || parameters.contains("mode=memory")
        {
            return Err(Error::InMemory(text.to_owned()));
        }
        if file.starts_with("file:") {
            return Err(refused("write it as a path, or as `sqlite:` and a path"));
        }
        if text == file {
            return Ok(self.location.clone());
        }
        if !matches!(parameters, "" | "mode=rw" | "mode=rwc") {
            return Err(refused("the only parameters it takes are `mode=rw` and `mode=rwc`"));
        }
        // For the percent signs.
        let parsed = SqliteConnectOptions::from_str(text).map_err(|error| refused(&error.to_string()))?;
        Ok(parsed.get_filename().to_owned())
    }

    pub(super) fn writing(&self, file: &Path) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(file)
            .busy_timeout(self.busy_timeout)
            // NORMAL can forget a committed claim when the power goes.
            .synchronous(SqliteSynchronous::Full)
            // The same on macOS, where a plain fsync leaves data in the drive's cache; elsewhere it does nothing.
            .pragma("fullfsync", "ON")
            .pragma("checkpoint_fullfsync", "ON")
            .thread_name(|number| format!("idem-sqlite-{number}"))
    }

    pub(super) fn reading(&self, file: &Path) -> SqliteConnectOptions {
        self.writing(file).read_only(true)
    }
}

impl<P: AsRef<Path>> From<P> for SqliteOptions {
    fn from(location: P) -> Self {
        Self::new(location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_urls_are_one_file() {
        for location in ["dir/a b.db", "sqlite:dir/a b.db", "sqlite://dir/a%20b.db", "sqlite:dir/a b.db?mode=rwc"] {
            assert_eq!(SqliteOptions::new(location).file().unwrap(), Path::new("dir/a b.db"), "{location}");
        }
        // Only a URL has percent signs that mean something, and a question mark that is none.
        assert_eq!(SqliteOptions::new("a%20b?.db").file().unwrap(), Path::new("a%20b?.db"));
    }

    #[test]
    fn what_is_forgotten_is_refused() {
        let forgotten = ["", ":memory:", "sqlite:", "sqlite::memory:", "sqlite://:memory:", "sqlite:a.db?mode=memory"];
        for location in forgotten.into_iter().chain(["sqlite://", "file::memory:"]) {
            let error = SqliteOptions::new(location).file().unwrap_err();
            assert_eq!(error.code(), "DATABASE_IN_MEMORY", "{location}");
            assert!(error.to_string().contains("MemoryStore"));
        }
        for location in
            ["file:a.db?vfs=memdb", "sqlite:a.db?vfs=memdb", "sqlite:a.db?mode=ro", "sqlite:a.db?cache=shared"]
        {
            assert_eq!(SqliteOptions::new(location).file().unwrap_err().code(), "DATABASE_URL", "{location}");
        }
    }
}

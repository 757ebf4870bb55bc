//! What the outbox and the inbox write inside of a transaction of the application's, on either database.

/// A database that holds idem's tables: `sqlx::Postgres` or `sqlx::Sqlite`, by this crate's features.
pub trait Tables: statements::Statements {}

impl<DB: statements::Statements> Tables for DB {}

/// For this crate only: nobody else can name it, so nobody else can be a database of idem's.
pub(crate) mod statements {
    use std::time::{Duration, SystemTime};

    use async_trait::async_trait;

    use crate::error::Error;
    use crate::outbox::Event;

    /// What became of a mark, by the database's clock.
    #[derive(Debug, Clone, Copy)]
    pub struct Mark {
        /// There was none before.
        pub first: bool,
        /// The mark's time is counted from here. Then the write may have waited for another transaction.
        pub since: SystemTime,
        /// After it was written.
        pub now: SystemTime,
    }

    #[async_trait]
    pub trait Statements: sqlx::Database {
        /// False where an event of this id is there.
        async fn append(connection: &mut Self::Connection, event: &Event) -> Result<bool, Error>;

        /// Topic, ordering key and type of the event of this id.
        async fn appended(connection: &mut Self::Connection, id: &str) -> Result<Option<[String; 3]>, Error>;

        /// Marks an event as seen by a consumer.
        async fn mark(
            connection: &mut Self::Connection,
            consumer: &str,
            event_id: &str,
            keep: Duration,
        ) -> Result<Mark, Error>;

        /// Whether that mark is there, in this transaction.
        async fn is_marked(connection: &mut Self::Connection, consumer: &str, event_id: &str) -> Result<bool, Error>;

        /// What a driver's error is.
        fn sorted(error: sqlx::Error) -> Error;
    }
}

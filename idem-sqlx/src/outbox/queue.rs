//! What relays and operators do at the table of events, on either database.

/// A store whose database holds events: `PgStore` or `SqliteStore`.
pub trait OutboxStore: statements::Queue {}

impl<S: statements::Queue> OutboxStore for S {}

/// For this crate only.
pub(crate) mod statements {
    use std::time::Duration;

    use async_trait::async_trait;
    use idem_core::{OwnerToken, StoreError};
    use sqlx::{ColumnIndex, Decode, Row, Type};

    use crate::error::Trouble;
    use crate::outbox::{Backlog, DeadLetter, Event};

    #[async_trait]
    pub trait Queue: Clone + Send + Sync + 'static {
        /// Up to so many events that are due and first in their lines.
        async fn take(&self, lease: &Lease, limit: u32) -> Result<Vec<Taken>, StoreError>;

        async fn settle(&self, lease: &Lease, number: i64, settle: &Settle) -> Result<Settled, StoreError>;

        async fn dead(&self, limit: u32) -> Result<Vec<DeadLetter>, StoreError>;

        /// How many dead letters wait again.
        async fn redrive(&self, which: &Which, by: &ByHand) -> Result<u64, StoreError>;

        /// Whether there was such a dead letter.
        async fn skip(&self, id: &str, by: &ByHand) -> Result<bool, StoreError>;

        async fn backlog(&self) -> Result<Backlog, StoreError>;

        /// One batch of events that are out and older than that, and of whatever else is in the way of who looks for
        /// events; how many rows.
        async fn clean(&self, older: Duration, limit: u32) -> Result<u64, StoreError>;

        /// One batch of marks whose time is over; how many.
        async fn clean_marks(&self, limit: u32) -> Result<u64, StoreError>;
    }

    /// Whose events are for how long.
    #[derive(Debug, Clone, Copy)]
    pub struct Lease {
        pub owner: OwnerToken,
        pub span: Duration,
    }

    /// An event in the hands of a relay.
    #[derive(Debug, Clone)]
    pub struct Taken {
        pub number: i64,
        pub event: Event,
        /// This one included.
        pub attempts: u32,
    }

    /// How publishing ended.
    #[derive(Debug, Clone)]
    pub enum Settle {
        Published {
            /// Whether the next one of the line is taken with it.
            next: bool,
        },
        Later {
            pause: Duration,
            why: String,
        },
        Dead {
            why: String,
        },
    }

    #[derive(Debug, Clone)]
    pub enum Settled {
        /// Somebody else has the event, or had it: nothing was written.
        Lost,
        /// It is written; and the next one of the line.
        Done(Option<Box<Taken>>),
    }

    #[derive(Debug, Clone)]
    pub enum Which {
        Event(String),
        Topic(String),
    }

    #[derive(Debug, Clone)]
    pub struct ByHand {
        pub actor: String,
        pub reason: String,
    }

    /// Reads `event_no`, `attempts` and the event.
    pub(crate) fn taken<R: Row>(row: &R) -> Result<Taken, Trouble>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let text = |name| row.try_get::<String, _>(name).map_err(|_| Trouble::Row(name));
        let number = |name| row.try_get::<i64, _>(name).map_err(|_| Trouble::Row(name));
        Ok(Taken {
            number: number("event_no")?,
            event: Event {
                id: text("event_id")?,
                topic: text("topic")?,
                key: text("ordering_key")?,
                kind: text("event_type")?,
                version: u32::try_from(number("schema_version")?).map_err(|_| Trouble::Row("schema_version"))?,
                payload: row.try_get("payload").map_err(|_| Trouble::Row("payload"))?,
            },
            attempts: u32::try_from(number("attempts")?).map_err(|_| Trouble::Row("attempts"))?,
        })
    }
}

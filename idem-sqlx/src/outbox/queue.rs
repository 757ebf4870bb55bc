//! What relays and operators do at the table of events, on either database.

/// A store whose database holds events: `PgStore` or `SqliteStore`.
pub trait OutboxStore: statements::Queue {}

impl<S: statements::Queue> OutboxStore for S {}

/// For this crate only.
pub(crate) mod statements {
    use std::time::{Duration, SystemTime};

    use async_trait::async_trait;
    use idem_core::{OwnerToken, StoreError};
    use sqlx::{ColumnIndex, Decode, Row, Type};

    use crate::error::Trouble;
    use crate::outbox::{Backlog, DeadLetter, Event};

    #[async_trait]
    pub trait Queue: Clone + Send + Sync + 'static {
        /// Up to so many events that are due and first in their lines. A row that does not read is dead after that.
        async fn take(&self, lease: &Lease, limit: u32) -> Result<Vec<Read>, StoreError>;

        async fn settle(&self, lease: &Lease, number: i64, settle: &Settle) -> Result<Settled, StoreError>;

        async fn dead(&self, limit: u32) -> Result<Vec<DeadLetter>, StoreError>;

        /// Whether there was such a dead letter.
        async fn redrive(&self, id: &str, by: &ByHand) -> Result<bool, StoreError>;

        /// One batch of a topic's dead letters whose numbers are above `after`, the oldest first.
        async fn redrive_topic(&self, topic: &str, after: i64, limit: u32, by: &ByHand)
        -> Result<Redriven, StoreError>;

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

    /// A row of the table of events, as far as it could be read.
    pub(crate) type Read = Result<Taken, Unreadable>;

    /// A row that is no event: another program wrote it, or a newer release.
    #[derive(Debug, Clone)]
    pub struct Unreadable {
        pub number: i64,
        /// As well as it reads.
        pub id: String,
        pub column: &'static str,
    }

    impl Unreadable {
        /// As the row of its dead letter keeps it.
        pub(crate) fn why(&self) -> String {
            format!("the row does not read as an event: its {}", self.column)
        }
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
        /// Nobody tried to publish it: it was taken too long ago. That is no attempt.
        Untried,
    }

    #[derive(Debug, Clone)]
    pub enum Settled {
        /// Somebody else has the event, or had it: nothing was written.
        Lost,
        /// It is written; and the next one of the line, if it was to be taken. It is dead if it does not read.
        Done(Option<Box<Read>>),
    }

    /// What one batch put back.
    #[derive(Debug, Clone, Copy)]
    pub struct Redriven {
        pub count: u64,
        /// The largest number among them.
        pub last: i64,
    }

    #[derive(Debug, Clone)]
    pub struct ByHand {
        pub actor: String,
        pub reason: String,
    }

    /// Reads `event_no`, `attempts` and the event.
    pub(crate) fn taken<R: Row>(row: &R) -> Result<Read, Trouble>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let number = row.try_get("event_no").map_err(|_| Trouble::Row("event_no"))?;
        Ok(match event(row) {
            Ok(event) => Ok(Taken { number, event, attempts: attempts(row) }),
            Err(Fault::Value(column)) => Err(Unreadable { number, id: id(row), column }),
            Err(Fault::Table(column)) => return Err(Trouble::Row(column)),
        })
    }

    /// Reads a dead letter. People must see all of them, those that do not read before others.
    pub(crate) fn letter<R: Row>(row: &R, last_error: String, appended_at: SystemTime) -> Result<DeadLetter, Trouble>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let event = match event(row) {
            Ok(event) => Some(event),
            Err(Fault::Value(_)) => None,
            Err(Fault::Table(column)) => return Err(Trouble::Row(column)),
        };
        Ok(DeadLetter { id: id(row), event, attempts: attempts(row), last_error, appended_at })
    }

    enum Fault {
        /// Of this row: others read.
        Value(&'static str),
        /// Of the table, which is not the one that this release knows: no event may be called dead for that.
        Table(&'static str),
    }

    fn event<R: Row>(row: &R) -> Result<Event, Fault>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let fault = |name| {
            move |error| match error {
                sqlx::Error::ColumnDecode { .. } => Fault::Value(name),
                _ => Fault::Table(name),
            }
        };
        let text = |name| row.try_get::<String, _>(name).map_err(fault(name));
        let version = "schema_version";
        let number = row.try_get::<i64, _>(version).map_err(fault(version))?;
        Ok(Event {
            id: text("event_id")?,
            topic: text("topic")?,
            key: text("ordering_key")?,
            kind: text("event_type")?,
            version: u32::try_from(number).map_err(|_| Fault::Value(version))?,
            payload: row.try_get("payload").map_err(fault("payload"))?,
        })
    }

    /// A count that does not read is one too many.
    fn attempts<R: Row>(row: &R) -> u32
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        row.try_get::<i64, _>("attempts").ok().and_then(|count| u32::try_from(count).ok()).unwrap_or(u32::MAX)
    }

    /// A person needs a name for the row, also where the name is what does not read.
    fn id<R: Row>(row: &R) -> String
    where
        for<'r> Vec<u8>: Decode<'r, R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let bytes: Vec<u8> = row.try_get_unchecked("event_id").unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

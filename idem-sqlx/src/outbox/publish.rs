//! Where events go: [`Publish`].

use std::error::Error;

use async_trait::async_trait;

use crate::outbox::Event;

/// Gives events to whoever reads them: a broker, another service, consumers in the same process.
///
/// ```
/// use async_trait::async_trait;
/// use idem_sqlx::outbox::{Event, Publish, PublishError};
///
/// struct Printer;
///
/// #[async_trait]
/// impl Publish for Printer {
///     async fn publish(&self, event: &Event) -> Result<(), PublishError> {
///         let payload = std::str::from_utf8(&event.payload).map_err(PublishError::refused)?;
///         println!("{} {}: {payload}", event.topic, event.id);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Publish: Send + Sync {
    /// Publishes the event with its id, by which consumers know it again: it is called at least once for each event, and
    /// again where nobody saw how the last call ended. `Ok` means that the event cannot get lost any more; a broker that
    /// has only taken it into its memory has not said that yet.
    ///
    /// It has half of the relay's lease, from when the event was asked for, then it is dropped and counts as [`PublishError::Retry`].
    ///
    /// # Errors
    /// [`PublishError`].
    async fn publish(&self, event: &Event) -> Result<(), PublishError>;
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// It may go better later: the broker is away, or its answer was not seen.
    #[error("the event was not published")]
    Retry(#[source] Box<dyn Error + Send + Sync>),
    /// Trying again brings nothing: too large, unknown topic, forbidden. The event is dead at once.
    #[error("the event was refused")]
    Refused(#[source] Box<dyn Error + Send + Sync>),
}

impl PublishError {
    /// It may go better later.
    pub fn retry(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Retry(source.into())
    }

    /// Trying again brings nothing.
    pub fn refused(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Refused(source.into())
    }

    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Retry(_) => "EVENT_NOT_PUBLISHED",
            Self::Refused(_) => "EVENT_REFUSED",
        }
    }
}

//! What is published: [`Event`].

use std::fmt;

/// Something that has happened, for others to know.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name for ever: an event of an id that is there is not appended again, and consumers know by it what they have
    /// seen. `claim.derived_id("payment_paid")` is the same in every attempt of a command; two events of one command
    /// need two prefixes. Never a hash of the payload: two honest events may say the same.
    pub id: String,
    /// Where it is published.
    pub topic: String,
    /// The business key, a payment's id for instance: events of one topic and key go out in the order in which their
    /// transactions were committed, and wait for each other. Where no order matters, the event's own id.
    pub key: String,
    /// What has happened: `payment_paid`.
    pub kind: String,
    /// The version of the payload's form.
    pub version: u32,
    /// What consumers read.
    pub payload: Vec<u8>,
}

impl Event {
    /// # Errors
    /// [`InvalidEvent`], for the first member that is wrong.
    pub(crate) fn check(&self) -> Result<(), InvalidEvent> {
        check_name("id", &self.id)?;
        check_name("topic", &self.topic)?;
        check_name("key", &self.key)?;
        check_name("kind", &self.kind)
    }
}

/// Without the payload, which is not for logs.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, topic, key, kind, version, payload } = self;
        f.debug_struct("Event")
            .field("id", id)
            .field("topic", topic)
            .field("key", key)
            .field("kind", kind)
            .field("version", version)
            .field("payload", &format_args!("{} bytes", payload.len()))
            .finish()
    }
}

/// A name that the tables do not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {member} {fault}")]
pub struct InvalidEvent {
    /// Whose: `id`, `topic`, `key`, `kind`, `consumer`.
    pub member: &'static str,
    fault: &'static str,
}

impl InvalidEvent {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "EVENT_INVALID"
    }
}

/// Refuses what one of the databases would not keep, or an index would not hold.
pub(crate) fn check_name(member: &'static str, name: &str) -> Result<(), InvalidEvent> {
    let fault = match name {
        "" => "is empty",
        name if name.len() > LONGEST => "is longer than 255 bytes",
        name if name.chars().any(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    Err(InvalidEvent { member, fault })
}

const LONGEST: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_database_would_not_keep_are_refused() {
        for wrong in ["", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(check_name("id", wrong).is_err(), "{wrong:?}");
        }
        for right in ["a", "a b", "größe", &"x".repeat(255)] {
            assert_eq!(check_name("id", right), Ok(()));
        }
        assert_eq!(check_name("topic", "").unwrap_err().to_string(), "the topic is empty");
    }

    #[test]
    fn a_logged_event_does_not_show_its_payload() {
        let event = Event {
            id: "e".into(),
            topic: "t".into(),
            key: "k".into(),
            kind: "paid".into(),
            version: 1,
            payload: b"4111".to_vec(),
        };
        let shown = format!("{event:?}");
        assert!(shown.contains("4 bytes") && !shown.contains("52"), "{shown}");
    }
}

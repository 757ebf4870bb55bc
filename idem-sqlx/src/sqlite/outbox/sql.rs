//! The statements of the outbox and the inbox.

/// An event behind another one is out of the way of who looks for what may be taken, until it is its turn. No row: there is
/// an event of this id.
pub(super) const APPEND: &str = "
INSERT INTO idempotency_outbox
    (event_id, topic, ordering_key, event_type, schema_version, payload, state, appended_at, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', ?7, iif(EXISTS (
    SELECT 1 FROM idempotency_outbox WHERE topic = ?2 AND ordering_key = ?3 AND finished_at IS NULL), ?8, ?7))
ON CONFLICT (event_id) DO NOTHING";

pub(super) const APPENDED: &str = "
SELECT topic, ordering_key, event_type FROM idempotency_outbox WHERE event_id = ?1";

pub(super) const DUE: &str = "
SELECT 1 FROM idempotency_outbox WHERE state = 'waiting' AND due_at <= ?1 LIMIT 1";

/// Only the first of a line: what comes after it is nobody's while it is not out, whoever has it.
pub(super) const TAKE: &str = "
UPDATE idempotency_outbox SET owner_token = ?1, attempts = attempts + 1, due_at = ?2
WHERE event_no IN (
    SELECT h.event_no FROM idempotency_outbox h
    WHERE h.state = 'waiting' AND h.due_at <= ?4 AND NOT EXISTS (
        SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
            AND f.finished_at IS NULL AND f.event_no < h.event_no)
    ORDER BY h.due_at LIMIT ?3)
RETURNING event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts";

pub(super) const PUBLISHED: &str = "
UPDATE idempotency_outbox SET state = 'published', finished_at = ?3, owner_token = NULL, last_error = NULL
WHERE event_no = ?2 AND owner_token = ?1 AND state = 'waiting'";

/// The next one of the line of an event that went out. When it was due does not matter: it was never the first before.
pub(super) const TAKE_NEXT: &str = "
UPDATE idempotency_outbox SET owner_token = ?1, attempts = attempts + 1, due_at = ?2
WHERE state = 'waiting' AND event_no = (
    SELECT f.event_no FROM idempotency_outbox o
    JOIN idempotency_outbox f ON f.topic = o.topic AND f.ordering_key = o.ordering_key AND f.finished_at IS NULL
    WHERE o.event_no = ?3 ORDER BY f.event_no LIMIT 1)
RETURNING event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts";

pub(super) const WAKE_NEXT: &str = "
UPDATE idempotency_outbox SET due_at = ?2
WHERE state = 'waiting' AND event_no = (
    SELECT f.event_no FROM idempotency_outbox o
    JOIN idempotency_outbox f ON f.topic = o.topic AND f.ordering_key = o.ordering_key AND f.finished_at IS NULL
    WHERE o.event_no = ?1 ORDER BY f.event_no LIMIT 1)";

/// Without a reason nobody tried, and it counts as no attempt.
pub(super) const NOT_PUBLISHED: &str = "
UPDATE idempotency_outbox SET state = ?3, due_at = ?4, owner_token = NULL, last_error = coalesce(?5, last_error),
    attempts = attempts - (?5 IS NULL)
WHERE event_no = ?2 AND owner_token = ?1 AND state = 'waiting'";

/// What has waited behind another one for a while.
pub(super) const BEHIND: &str = "
SELECT h.event_no FROM idempotency_outbox h
WHERE h.state = 'waiting' AND h.owner_token IS NULL AND h.due_at < ?1 AND EXISTS (
    SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
        AND f.finished_at IS NULL AND f.event_no < h.event_no)
ORDER BY h.due_at LIMIT ?2";

pub(super) const DEFER: &str = "
UPDATE idempotency_outbox AS h SET due_at = ?2
WHERE h.event_no = ?1 AND h.state = 'waiting' AND h.owner_token IS NULL AND EXISTS (
    SELECT 1 FROM idempotency_outbox f WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key
        AND f.finished_at IS NULL AND f.event_no < h.event_no)";

pub(super) const DEAD: &str = "
SELECT event_no, event_id, topic, ordering_key, event_type, schema_version, payload, attempts, appended_at,
    coalesce(last_error, '') AS last_error
FROM idempotency_outbox WHERE state = 'dead' ORDER BY event_no LIMIT ?1";

pub(super) const REDRIVE: &str = "
UPDATE idempotency_outbox SET state = 'waiting', attempts = 0, due_at = ?2 WHERE event_id = ?1 AND state = 'dead'";

pub(super) const REDRIVE_TOPIC: &str = "
UPDATE idempotency_outbox SET state = 'waiting', attempts = 0, due_at = ?4
WHERE event_no IN (
    SELECT event_no FROM idempotency_outbox WHERE state = 'dead' AND topic = ?1 AND event_no > ?2
    ORDER BY event_no LIMIT ?3)
RETURNING event_no, event_id";

pub(super) const SKIP: &str = "
UPDATE idempotency_outbox SET state = 'skipped', finished_at = ?2 WHERE event_id = ?1 AND state = 'dead'
RETURNING event_no";

pub(super) const BACKLOG: &str = "
SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead,
    min(appended_at) AS oldest
FROM idempotency_outbox INDEXED BY idempotency_outbox_line WHERE finished_at IS NULL";

pub(super) const CLEAN_EVENTS: &str = "
DELETE FROM idempotency_outbox WHERE event_no IN (
    SELECT event_no FROM idempotency_outbox WHERE finished_at < ?1 ORDER BY finished_at LIMIT ?2)";

pub(super) const MARK: &str = "
INSERT INTO idempotency_inbox (consumer, event_id, seen_at, purge_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (consumer, event_id) DO NOTHING";

pub(super) const MARKED: &str = "SELECT 1 FROM idempotency_inbox WHERE consumer = ?1 AND event_id = ?2";

pub(super) const CLEAN_MARKS: &str = "
DELETE FROM idempotency_inbox WHERE (consumer, event_id) IN (
    SELECT consumer, event_id FROM idempotency_inbox WHERE purge_at < ?1 ORDER BY purge_at LIMIT ?2)";

/// Every statement that finds its rows by an index, for the test of their plans. (A backlog is counted along one.)
#[cfg(test)]
pub(in crate::sqlite) const STATEMENTS: &[&str] = &[
    APPEND,
    APPENDED,
    DUE,
    TAKE,
    PUBLISHED,
    TAKE_NEXT,
    WAKE_NEXT,
    NOT_PUBLISHED,
    BEHIND,
    DEFER,
    REDRIVE,
    REDRIVE_TOPIC,
    SKIP,
    CLEAN_EVENTS,
    MARK,
    MARKED,
    CLEAN_MARKS,
];

#[cfg(test)]
pub(in crate::sqlite) const INDEXED: &[(&str, &str)] = &[
    (APPEND, "idempotency_outbox_line"),
    (DUE, "idempotency_outbox_due"),
    (TAKE, "idempotency_outbox_line"),
    (TAKE, "idempotency_outbox_due"),
    (TAKE_NEXT, "idempotency_outbox_line"),
    (WAKE_NEXT, "idempotency_outbox_line"),
    (BEHIND, "idempotency_outbox_due"),
    (BEHIND, "idempotency_outbox_line"),
    (REDRIVE_TOPIC, "idempotency_outbox_dead"),
    (CLEAN_EVENTS, "idempotency_outbox_finished"),
    (CLEAN_MARKS, "idempotency_inbox_purge"),
];

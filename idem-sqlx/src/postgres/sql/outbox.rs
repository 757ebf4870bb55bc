//! The outbox and the inbox.

/// What a relay has to know of an event.
macro_rules! taken {
    () => {
        "o.event_no, o.event_id, o.topic, o.ordering_key, o.event_type, o.schema_version, o.payload,
    o.attempts::bigint AS attempts"
    };
}

/// What makes an event a relay's. $1: token. $2: lease.
macro_rules! take {
    () => {
        concat!(
            "UPDATE idem.idempotency_outbox o SET owner_token = $1, attempts = o.attempts + 1, due_at = ",
            after!("clock_timestamp()", "$2")
        )
    };
}

/// $1 to $6: the event. The line is locked first, and the event gets its number after that: whoever appends to the same
/// line meanwhile comes later, in number as in commit. No row: there is an event of this id.
pub(in crate::postgres) const APPEND: &str = "
WITH line AS (
    INSERT INTO idem.idempotency_outbox_lines (topic, ordering_key, appended_at) VALUES ($2, $3, clock_timestamp())
    ON CONFLICT (topic, ordering_key) DO UPDATE SET appended_at = clock_timestamp() RETURNING topic
)
INSERT INTO idem.idempotency_outbox
    (appended_at, due_at, schema_version, event_id, topic, ordering_key, event_type, state, payload)
SELECT clock_timestamp(), clock_timestamp(), $5, $1, $2, $3, $4, 'waiting', $6 FROM line
ON CONFLICT (event_id) DO NOTHING RETURNING event_no";

pub(in crate::postgres) const APPENDED: &str =
    "SELECT topic, ordering_key, event_type FROM idem.idempotency_outbox WHERE event_id = $1";

/// $3: how many. Only the first of a line is ever locked here, so that what comes after it is nobody's while it is not
/// out, whoever has it.
pub(in crate::postgres) const TAKE: &str = concat!(
    "
WITH heads AS MATERIALIZED (
    SELECT h.event_no FROM idem.idempotency_outbox h
    WHERE h.state = 'waiting' AND h.due_at <= (SELECT clock_timestamp())
        AND h.event_no = (SELECT f.event_no FROM idem.idempotency_outbox f
            WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key AND f.finished_at IS NULL
            ORDER BY f.event_no LIMIT 1)
    ORDER BY h.due_at LIMIT $3
    FOR UPDATE OF h SKIP LOCKED
)
",
    take!(),
    " FROM heads WHERE o.event_no = heads.event_no RETURNING ",
    taken!()
);

/// $1: token. $2: lease. $3: the event that went out. $4: whether the next one of its line is taken; otherwise it is due
/// for whoever comes. One row: whether it was still ours, and the next one. When the next one was due does not matter: it
/// was never the first before.
pub(in crate::postgres) const PUBLISHED: &str = concat!(
    "
WITH done AS (
    UPDATE idem.idempotency_outbox SET state = 'published', finished_at = clock_timestamp(), owner_token = NULL,
        last_error = NULL
    WHERE event_no = $3 AND owner_token = $1 AND state = 'waiting' RETURNING event_no, topic, ordering_key
), next AS (
    SELECT n.event_no FROM done CROSS JOIN LATERAL (
        SELECT f.event_no FROM idem.idempotency_outbox f
        WHERE f.topic = done.topic AND f.ordering_key = done.ordering_key AND f.finished_at IS NULL
            AND f.event_no > done.event_no
        ORDER BY f.event_no LIMIT 1
    ) AS n
), taken AS (
    UPDATE idem.idempotency_outbox o SET owner_token = CASE WHEN $4 THEN $1 END, attempts = o.attempts + $4::integer,
        due_at = CASE WHEN $4 THEN ",
    after!("clock_timestamp()", "$2"),
    " ELSE clock_timestamp() END
    FROM next WHERE o.event_no = next.event_no AND o.state = 'waiting' RETURNING ",
    taken!(),
    "
)
SELECT (SELECT count(*) FROM done) AS done, taken.* FROM (SELECT) AS one LEFT JOIN taken ON $4"
);

/// $1: token. $2: the event. $3: the pause before the next try; NULL: there is none. $4: why; NULL: nobody tried, and it
/// counts as no attempt. No row: it is not ours.
pub(in crate::postgres) const NOT_PUBLISHED: &str = concat!(
    "
UPDATE idem.idempotency_outbox SET owner_token = NULL, last_error = coalesce($4, last_error),
    attempts = attempts - ($4::text IS NULL)::integer,
    state = CASE WHEN $3::bigint IS NULL THEN 'dead' ELSE 'waiting' END,
    due_at = CASE WHEN $3::bigint IS NULL THEN due_at ELSE ",
    after!("clock_timestamp()", "$3"),
    " END
WHERE event_no = $2 AND owner_token = $1 AND state = 'waiting' RETURNING event_no"
);

pub(in crate::postgres) const DEAD: &str = concat!(
    "SELECT ",
    taken!(),
    ", coalesce(o.last_error, '') AS last_error, ",
    micros!("o.appended_at"),
    " AS appended_at
FROM idem.idempotency_outbox o WHERE o.state = 'dead' ORDER BY o.event_no LIMIT $1"
);

/// $1: an event's id. $2: actor. $3: reason.
pub(in crate::postgres) const REDRIVE: &str = "
WITH redriven AS (
    UPDATE idem.idempotency_outbox SET state = 'waiting', attempts = 0, due_at = clock_timestamp()
    WHERE state = 'dead' AND event_id = $1 RETURNING event_id
)
INSERT INTO idem.idempotency_audit (acted_at, actor, action, reason)
SELECT clock_timestamp(), $2, 'redrive event ' || event_id, $3 FROM redriven RETURNING audit_id";

/// $1: topic. $2: the number before the first one. $3: how many. $4: actor. $5: reason. One row: how many, and the last.
pub(in crate::postgres) const REDRIVE_TOPIC: &str = "
WITH redriven AS (
    UPDATE idem.idempotency_outbox SET state = 'waiting', attempts = 0, due_at = clock_timestamp()
    WHERE event_no = ANY (ARRAY(
        SELECT event_no FROM idem.idempotency_outbox WHERE state = 'dead' AND topic = $1 AND event_no > $2
        ORDER BY event_no LIMIT $3 FOR UPDATE))
    RETURNING event_no, event_id
), audited AS (
    INSERT INTO idem.idempotency_audit (acted_at, actor, action, reason)
    SELECT clock_timestamp(), $4, 'redrive event ' || event_id, $5 FROM redriven
)
SELECT count(*) AS redriven, coalesce(max(event_no), $2) AS last FROM redriven";

/// $1: an event's id. $2: actor. $3: reason. The next one of its line is due.
pub(in crate::postgres) const SKIP: &str = "
WITH skipped AS (
    UPDATE idem.idempotency_outbox SET state = 'skipped', finished_at = clock_timestamp()
    WHERE state = 'dead' AND event_id = $1 RETURNING event_id, event_no, topic, ordering_key
), next AS (
    UPDATE idem.idempotency_outbox o SET due_at = clock_timestamp() FROM skipped
    WHERE o.state = 'waiting' AND o.event_no = (SELECT f.event_no FROM idem.idempotency_outbox f
        WHERE f.topic = skipped.topic AND f.ordering_key = skipped.ordering_key AND f.finished_at IS NULL
            AND f.event_no > skipped.event_no
        ORDER BY f.event_no LIMIT 1)
)
INSERT INTO idem.idempotency_audit (acted_at, actor, action, reason)
SELECT clock_timestamp(), $2, 'skip event ' || event_id, $3 FROM skipped RETURNING audit_id";

pub(in crate::postgres) const BACKLOG: &str = concat!(
    "SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead, ",
    micros!("(clock_timestamp() - min(appended_at))"),
    " AS oldest FROM idem.idempotency_outbox WHERE finished_at IS NULL"
);

/// $1: how long they are kept. $2: how many.
pub(in crate::postgres) const CLEAN_EVENTS: &str = "
DELETE FROM idem.idempotency_outbox WHERE event_no = ANY (ARRAY(
    SELECT event_no FROM idem.idempotency_outbox
    WHERE finished_at < (SELECT clock_timestamp() - $1 * interval '1 microsecond')
    ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING event_no";

/// The same of lines that have no events any more. A row that goes while somebody waits for it is made anew by him: it
/// says nothing but who has it.
pub(in crate::postgres) const CLEAN_LINES: &str = "
DELETE FROM idem.idempotency_outbox_lines WHERE ctid = ANY (ARRAY(
    SELECT l.ctid FROM idem.idempotency_outbox_lines l
    WHERE l.appended_at < (SELECT clock_timestamp() - $1 * interval '1 microsecond')
        AND NOT EXISTS (SELECT FROM idem.idempotency_outbox o
            WHERE o.topic = l.topic AND o.ordering_key = l.ordering_key AND o.finished_at IS NULL)
    ORDER BY l.appended_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED)) RETURNING topic";

/// Events that have waited behind another one for a while are out of the way of who looks for what may be taken: they are
/// looked at again after half of their age, and taken before that by who is done with the one before. $1: how many.
pub(in crate::postgres) const DEFER: &str = "
UPDATE idem.idempotency_outbox SET
    due_at = clock_timestamp() + least(greatest((clock_timestamp() - appended_at) / 2, interval '1 minute'), interval '1 hour')
WHERE event_no = ANY (ARRAY(
    SELECT h.event_no FROM idem.idempotency_outbox h
    WHERE h.state = 'waiting' AND h.owner_token IS NULL
        AND h.due_at < (SELECT clock_timestamp() - interval '10 seconds')
        AND EXISTS (SELECT FROM idem.idempotency_outbox f
            WHERE f.topic = h.topic AND f.ordering_key = h.ordering_key AND f.finished_at IS NULL
                AND f.event_no < h.event_no)
    ORDER BY h.due_at LIMIT $1 FOR UPDATE OF h SKIP LOCKED)) RETURNING event_no";

/// $1: consumer. $2: event. $3: how long it is kept. One row: whether it is the first, the time that it is kept from,
/// and the time after it was written.
pub(in crate::postgres) const MARK: &str = concat!(
    "
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS t), marked AS (
    INSERT INTO idem.idempotency_inbox (seen_at, purge_at, consumer, event_id)
    SELECT t, ",
    after!("t", "$3"),
    ", $1, $2 FROM clock ON CONFLICT (consumer, event_id) DO NOTHING RETURNING consumer
)
SELECT first, ",
    micros!("t"),
    " AS since, ",
    micros!("clock_timestamp()"),
    " AS now FROM (SELECT count(*) > 0 AS first FROM marked OFFSET 0) AS marks, clock"
);

pub(in crate::postgres) const MARKED: &str =
    "SELECT 1 FROM idem.idempotency_inbox WHERE consumer = $1 AND event_id = $2";

pub(in crate::postgres) const CLEAN_MARKS: &str = "
DELETE FROM idem.idempotency_inbox WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idem.idempotency_inbox WHERE purge_at < (SELECT clock_timestamp())
    ORDER BY purge_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING consumer";

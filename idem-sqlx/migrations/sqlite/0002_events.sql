-- Events that are written with business rows and have to reach others. There is one writer at a time, so numbers and
-- commits come in one order.
CREATE TABLE idempotency_outbox (
    -- The order of events. (A number may come again when the row that had it is gone, never below one that is there.)
    event_no       INTEGER PRIMARY KEY,
    event_id       TEXT    NOT NULL UNIQUE CHECK (event_id <> ''),
    topic          TEXT    NOT NULL CHECK (topic <> ''),
    ordering_key   TEXT    NOT NULL CHECK (ordering_key <> ''),
    event_type     TEXT    NOT NULL CHECK (event_type <> ''),
    schema_version INTEGER NOT NULL CHECK (schema_version >= 0),
    payload        BLOB    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('waiting', 'published', 'dead', 'skipped')),
    -- How often a relay has taken it, since it was appended or put back.
    attempts       INTEGER NOT NULL DEFAULT 0,
    -- Of the relay that has it, new for every taking; NULL: nobody has.
    owner_token    BLOB,
    appended_at    INTEGER NOT NULL,
    -- When a relay may take it: at once, after the pause that follows a failed try, or when the lease of the relay that
    -- has it is over.
    due_at         INTEGER NOT NULL,
    -- When it went out or was skipped: it holds up nobody any more.
    finished_at    INTEGER,
    last_error     TEXT,

    CHECK ((state IN ('published', 'skipped')) = (finished_at IS NOT NULL)),
    CHECK (owner_token IS NULL OR state = 'waiting')
) STRICT;

-- Who is first in a line (topic, ordering_key). A dead letter stays in it, and holds up what comes after it.
CREATE INDEX idempotency_outbox_line ON idempotency_outbox (topic, ordering_key, event_no) WHERE finished_at IS NULL;

-- What may be taken, the longest due first.
CREATE INDEX idempotency_outbox_due ON idempotency_outbox (due_at) WHERE state = 'waiting';

-- For people.
CREATE INDEX idempotency_outbox_dead ON idempotency_outbox (event_no) WHERE state = 'dead';

-- For the clean-up.
CREATE INDEX idempotency_outbox_finished ON idempotency_outbox (finished_at) WHERE finished_at IS NOT NULL;

-- Messages and webhooks that have had their effect, for each consumer.
CREATE TABLE idempotency_inbox (
    consumer TEXT    NOT NULL CHECK (consumer <> ''),
    event_id TEXT    NOT NULL CHECK (event_id <> ''),
    seen_at  INTEGER NOT NULL,
    -- Until when the same message is recognised.
    purge_at INTEGER NOT NULL,

    PRIMARY KEY (consumer, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_inbox_purge ON idempotency_inbox (purge_at);

-- Events that are written with business rows and have to reach others.
CREATE TABLE idem.idempotency_outbox (
    -- The order of events: within one line (topic, ordering_key) it is the order of their commits.
    event_no       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    appended_at    timestamptz NOT NULL,
    -- When a relay may take it: at once, after the pause that follows a failed try, or when the lease of the relay that
    -- has it is over.
    due_at         timestamptz NOT NULL,
    -- When it went out or was skipped: it holds up nobody any more.
    finished_at    timestamptz,
    schema_version bigint      NOT NULL CHECK (schema_version >= 0),
    -- How often a relay has taken it, since it was appended or put back.
    attempts       integer     NOT NULL DEFAULT 0,
    -- Of the relay that has it, new for every taking; NULL: nobody has.
    owner_token    uuid,

    event_id       text        NOT NULL COLLATE "C" UNIQUE CHECK (event_id <> ''),
    topic          text        NOT NULL COLLATE "C" CHECK (topic <> ''),
    ordering_key   text        NOT NULL COLLATE "C" CHECK (ordering_key <> ''),
    event_type     text        NOT NULL COLLATE "C" CHECK (event_type <> ''),
    state          text        NOT NULL COLLATE "C" CHECK (state IN ('waiting', 'published', 'dead', 'skipped')),
    payload        bytea       NOT NULL,
    last_error     text,

    CHECK ((state IN ('published', 'skipped')) = (finished_at IS NOT NULL)),
    CHECK (owner_token IS NULL OR state = 'waiting')
) WITH (
    -- A queue leaves two dead versions for each event; cleaned by their share, relays step over few of them.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

-- Who is first in a line. A dead letter stays in it, and holds up what comes after it.
CREATE INDEX idempotency_outbox_line ON idem.idempotency_outbox (topic, ordering_key, event_no)
    WHERE finished_at IS NULL;

-- What may be taken, the longest due first.
CREATE INDEX idempotency_outbox_due ON idem.idempotency_outbox (due_at) WHERE state = 'waiting';

-- For people.
CREATE INDEX idempotency_outbox_dead ON idem.idempotency_outbox (event_no) WHERE state = 'dead';

-- For the clean-up.
CREATE INDEX idempotency_outbox_finished ON idem.idempotency_outbox (finished_at) WHERE finished_at IS NOT NULL;

-- One row for each line, locked by who appends to it until his commit: transactions that append to one line do so one
-- after the other, so that numbers and commits come in one order. Relays never touch it.
CREATE TABLE idem.idempotency_outbox_lines (
    appended_at  timestamptz NOT NULL,
    topic        text        NOT NULL COLLATE "C",
    ordering_key text        NOT NULL COLLATE "C",

    PRIMARY KEY (topic, ordering_key)
);

CREATE INDEX idempotency_outbox_lines_appended ON idem.idempotency_outbox_lines (appended_at);

-- Messages and webhooks that have had their effect, for each consumer.
CREATE TABLE idem.idempotency_inbox (
    seen_at  timestamptz NOT NULL,
    -- Until when the same message is recognised.
    purge_at timestamptz NOT NULL,
    consumer text        NOT NULL COLLATE "C" CHECK (consumer <> ''),
    event_id text        NOT NULL COLLATE "C" CHECK (event_id <> ''),

    PRIMARY KEY (consumer, event_id)
);

CREATE INDEX idempotency_inbox_purge ON idem.idempotency_inbox (purge_at);

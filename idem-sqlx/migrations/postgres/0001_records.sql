-- What idem remembers of every key. Texts compare byte by byte (COLLATE "C") whatever the database's locale is.
CREATE TABLE idem.idempotency_requests (
    -- Columns of fixed width first: no padding between them.
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL,
    -- When the sweeper looks at the row, at the latest. Set by the insert to a day later and left alone by a completion
    -- whose window is a day or longer, so that such a completion changes no indexed column and stays a HOT update.
    sweep_at                timestamptz NOT NULL,
    -- When a worker has to look at the row. NULL on the ordinary way from claim to completion, which therefore never
    -- touches the index on it.
    due_at                  timestamptz,
    -- fence: one more at every change of owner. owner_token: the attempt's own name. revision: one more at every write.
    fence                   bigint      NOT NULL CHECK (fence > 0),
    revision                bigint      NOT NULL CHECK (revision > 0),
    locked_until            timestamptz,
    -- Set with the first announcement; calls are looked for only where it is set.
    first_call_at           timestamptz,
    finished_at             timestamptz,
    expires_at              timestamptz,
    body_until              timestamptz,
    purge_at                timestamptz,
    -- When the work may run again (failed_retryable), or when the providers are asked (unknown_requires_recovery).
    next_attempt_at         timestamptz,
    parked_at               timestamptz,
    owner_token             uuid        NOT NULL,
    attempts                integer     NOT NULL,
    ask_attempts            integer     NOT NULL DEFAULT 0,
    hash_form               integer     NOT NULL CHECK (hash_form > 0),
    hash_version            bigint      NOT NULL CHECK (hash_version > 0),
    response_status         integer,
    -- The day whose partition of idempotency_bodies has the body; NULL: it is in this row, or not kept.
    body_day                date,

    tenant_id               text        NOT NULL COLLATE "C" CHECK (tenant_id <> ''),
    operation_name          text        NOT NULL COLLATE "C" CHECK (operation_name <> ''),
    idempotency_key         text        NOT NULL COLLATE "C" CHECK (idempotency_key <> ''),
    status                  text        NOT NULL COLLATE "C" CHECK (status IN (
        'in_progress', 'completed', 'failed_replayable', 'failed_retryable', 'unknown_requires_recovery', 'expired')),
    -- What the first command meant, by the rules it was written with.
    request_hash            bytea       NOT NULL CHECK (octet_length(request_hash) = 32),

    -- The answer, byte by byte; bytea, since a JSON type would order keys anew, drop doubled ones and refuse NUL.
    response_headers        bytea,
    response_body           bytea,

    resource_type           text        COLLATE "C",
    resource_id             text        COLLATE "C",
    checkpoint              text        COLLATE "C",
    checkpoint_version      bigint,
    checkpoint_data         bytea,

    PRIMARY KEY (tenant_id, operation_name, idempotency_key),
    CHECK (status <> 'in_progress' OR locked_until IS NOT NULL),
    CHECK (status NOT IN ('completed', 'failed_replayable') OR (response_status IS NOT NULL
        AND response_headers IS NOT NULL AND finished_at IS NOT NULL AND expires_at IS NOT NULL)),
    CHECK (status <> 'failed_retryable' OR (next_attempt_at IS NOT NULL AND expires_at IS NOT NULL)),
    CHECK (status <> 'unknown_requires_recovery' OR next_attempt_at IS NOT NULL),
    CHECK (response_body IS NULL OR body_day IS NULL)
) WITH (
    -- Every row is written at least twice, and grows by its answer the second time: half of each page is left for the
    -- second versions, most of which then need no new index entries.
    fillfactor = 50,
    -- By the share of rows that are dead, not by a fifth of a table of millions; HOT leaves little to do.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    -- Rows that were only inserted are frozen in small portions too, instead of all at once at the wrap-around.
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

-- The sweeper's line, and the worker's: a record in progress that was never taken over stands a day after its insert.
-- Its entries come in the order of time, which makes them cheap.
CREATE INDEX idempotency_requests_sweep ON idem.idempotency_requests (sweep_at);

-- Records that a worker has to look at, and no others: due_at is exactly what `idem_core::transition::due_at` says. Nothing else can be found by their status: an index that names
-- it would have to be written by every claim and every completion.
CREATE INDEX idempotency_requests_due ON idem.idempotency_requests (due_at) WHERE due_at IS NOT NULL;

-- Announced calls, in the order of their first announcement (call_id). No cascade: a record that ever opened a call
-- is not deleted by accident.
CREATE TABLE idem.idempotency_calls (
    call_id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    opened_at       timestamptz NOT NULL,
    closed_at       timestamptz,
    -- Of the owner that wrote last.
    fence           bigint      NOT NULL CHECK (fence > 0),
    -- In microseconds. dedupes: the provider's retention. query_only: its quiescence.
    class_span      bigint,
    tenant_id       text        NOT NULL COLLATE "C",
    operation_name  text        NOT NULL COLLATE "C",
    idempotency_key text        NOT NULL COLLATE "C",
    call_name       text        NOT NULL COLLATE "C" CHECK (call_name <> ''),
    class           text        NOT NULL COLLATE "C" CHECK (class IN ('dedupes', 'query_only', 'neither')),
    state           text        NOT NULL COLLATE "C" CHECK (state IN ('open', 'applied', 'rejected', 'withdrawn')),
    downstream_key  text        NOT NULL COLLATE "C" UNIQUE,
    outcome         bytea,

    UNIQUE (tenant_id, operation_name, idempotency_key, call_name),
    FOREIGN KEY (tenant_id, operation_name, idempotency_key)
        REFERENCES idem.idempotency_requests (tenant_id, operation_name, idempotency_key),
    CHECK ((class = 'neither') = (class_span IS NULL)),
    CHECK ((state IN ('applied', 'rejected')) = (outcome IS NOT NULL))
) WITH (
    -- A call is written twice: opened and closed.
    fillfactor = 70
);

-- Bodies over a small bound, by the day on which their retention ends: a whole day is dropped at once. No key ties them
-- to their record, whose uniqueness stays where it is.
CREATE TABLE idem.idempotency_bodies (
    day             date   NOT NULL,
    tenant_id       text   NOT NULL COLLATE "C",
    operation_name  text   NOT NULL COLLATE "C",
    idempotency_key text   NOT NULL COLLATE "C",
    -- Of the owner that wrote it: one that lost its record has written beside it.
    fence           bigint NOT NULL,
    body            bytea  NOT NULL,

    PRIMARY KEY (day, tenant_id, operation_name, idempotency_key)
) PARTITION BY RANGE (day);

-- lz4 where the server has it: several times faster than pglz at about the same size.
DO $$
BEGIN
    ALTER TABLE idem.idempotency_bodies ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END
$$;

-- For days that have no partition, emptied in batches.
CREATE TABLE idem.idempotency_bodies_default PARTITION OF idem.idempotency_bodies DEFAULT;

-- Makes the partition of a day. False where it is there, the role may not, somebody is in the way, or the day has
-- bodies in the DEFAULT partition already; then they stay there.
CREATE FUNCTION idem.make_body_day(day date) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE idem.%I PARTITION OF idem.idempotency_bodies FOR VALUES FROM (%L) TO (%L)',
        'idempotency_bodies_' || to_char(day, 'YYYYMMDD'), day, day + 1);
    RETURN true;
EXCEPTION WHEN duplicate_table OR insufficient_privilege OR lock_not_available OR check_violation THEN
    RETURN false;
END
$$;

-- Drops the partitions of days before that one; says how many.
CREATE FUNCTION idem.drop_body_days(before date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    partition text;
    dropped integer := 0;
BEGIN
    FOR partition IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'idem.idempotency_bodies'::regclass AND c.relname ~ '^idempotency_bodies_[0-9]{8}$'
            AND to_date(right(c.relname, 8), 'YYYYMMDD') < before
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE idem.%I', partition);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
EXCEPTION WHEN insufficient_privilege OR lock_not_available OR undefined_table THEN
    RETURN 0;
END
$$;

SELECT idem.make_body_day((clock_timestamp() AT TIME ZONE 'UTC')::date + ahead) FROM generate_series(0, 2) AS ahead;

-- What arrived late: an old owner's outcome, a provider's webhook. Only ever added to, and gone with its record.
CREATE TABLE idem.idempotency_evidence (
    evidence_id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at     timestamptz NOT NULL,
    tenant_id       text        NOT NULL COLLATE "C",
    operation_name  text        NOT NULL COLLATE "C",
    idempotency_key text        NOT NULL COLLATE "C",
    downstream_key  text        NOT NULL COLLATE "C",
    source          text        NOT NULL COLLATE "C",
    state           text        NOT NULL COLLATE "C" CHECK (state IN ('applied', 'rejected', 'withdrawn')),
    outcome         bytea
);

CREATE INDEX idempotency_evidence_record
    ON idem.idempotency_evidence (tenant_id, operation_name, idempotency_key, evidence_id);

-- What people did, and why. Only ever added to.
CREATE TABLE idem.idempotency_audit (
    audit_id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    acted_at        timestamptz NOT NULL,
    tenant_id       text        COLLATE "C",
    operation_name  text        COLLATE "C",
    idempotency_key text        COLLATE "C",
    actor           text        NOT NULL,
    action          text        NOT NULL,
    reason          text        NOT NULL
);

CREATE INDEX idempotency_audit_record ON idem.idempotency_audit (tenant_id, operation_name, idempotency_key, audit_id);

-- The contracts that wrote the records of one operation and version, in the order in which they came.
CREATE TABLE idem.idempotency_contracts (
    operation_name text        NOT NULL COLLATE "C" CHECK (operation_name <> ''),
    version        bigint      NOT NULL CHECK (version > 0),
    number         bigint      NOT NULL CHECK (number >= 0),
    contract       text        NOT NULL COLLATE "C",
    first_seen_at  timestamptz NOT NULL,

    PRIMARY KEY (operation_name, version, number)
);

-- Values that must not change while records live: the namespace.
CREATE TABLE idem.idempotency_settings (
    name       text        NOT NULL COLLATE "C" PRIMARY KEY CHECK (name <> ''),
    value      text        NOT NULL,
    updated_at timestamptz NOT NULL
);

-- due: how far the worker has walked along the sweeper's line; records in progress before that were looked at.
-- worker: when one was last alive.
CREATE TABLE idem.idempotency_progress (
    name text        NOT NULL COLLATE "C" PRIMARY KEY,
    at   timestamptz NOT NULL
);

INSERT INTO idem.idempotency_progress (name, at) VALUES ('due', '-infinity');

-- The database's own name, by which a store knows its transactions from another database's.
CREATE TABLE idem.idempotency_store (
    id uuid NOT NULL PRIMARY KEY
);

INSERT INTO idem.idempotency_store (id) VALUES (gen_random_uuid());

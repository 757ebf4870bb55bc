//! The schema as the next release leaves it: everything that a migration may do while this release still runs.

use idem_cluster::Database;
use idem_sqlx::PgStore;

use super::options;

/// Every behaviour again.
mod conformance {
    idem_core::conformance!(crate::stores::block_on, super::expanded());
}

/// Columns come, with a default or without; at the front of a view of the table they would not, so positions may not
/// matter either. Checks are widened, indexes and tables added.
const NEXT: &str = "
ALTER TABLE idem.idempotency_requests ADD COLUMN later text NOT NULL DEFAULT 'x', ADD COLUMN at timestamptz,
    ADD COLUMN t bigint, ADD COLUMN next bigint, ADD COLUMN name text NOT NULL DEFAULT 'y';
ALTER TABLE idem.idempotency_requests DROP CONSTRAINT idempotency_requests_status_check, ADD CHECK (status <> '');
ALTER TABLE idem.idempotency_calls ADD COLUMN later text NOT NULL DEFAULT 'x', ADD COLUMN verdict text,
    ADD COLUMN name text NOT NULL DEFAULT 'y', ADD COLUMN now bigint;
ALTER TABLE idem.idempotency_bodies ADD COLUMN later text NOT NULL DEFAULT 'x';
ALTER TABLE idem.idempotency_evidence ADD COLUMN later text NOT NULL DEFAULT 'x';
ALTER TABLE idem.idempotency_audit ADD COLUMN later text NOT NULL DEFAULT 'x';
ALTER TABLE idem.idempotency_contracts ADD COLUMN later text NOT NULL DEFAULT 'x';
ALTER TABLE idem.idempotency_settings ADD COLUMN later text NOT NULL DEFAULT 'x';
ALTER TABLE idem.idempotency_progress ADD COLUMN later text NOT NULL DEFAULT 'x';
CREATE INDEX ON idem.idempotency_requests (created_at);
CREATE TABLE idem.idempotency_later (tenant_id text NOT NULL, status text NOT NULL);
INSERT INTO idem.idempotency_migrations (version, name, oldest, checksum) VALUES (1001, 'later', 1, '')";

async fn expanded() -> (PgStore, Database) {
    let database = idem_cluster::Cluster::shared().database().await;
    PgStore::migrate(options(&database)).await.unwrap();
    database.run(NEXT).await;
    (PgStore::open(options(&database)).await.unwrap(), database)
}

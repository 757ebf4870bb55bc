//! The schema as the next release leaves it: everything that a migration may do while this release still runs.

use idem_sqlx::SqliteStore;

use super::files::run;

/// Every behaviour again.
mod conformance {
    idem_core::conformance!(crate::stores::block_on, super::expanded());
}

/// Columns come, with a default or without, under names that statements use for something else too; indexes and tables.
const NEXT: &str = "
ALTER TABLE idempotency_requests ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_requests ADD COLUMN now INTEGER;
ALTER TABLE idempotency_requests ADD COLUMN state TEXT NOT NULL DEFAULT 'y';
ALTER TABLE idempotency_requests ADD COLUMN call_name TEXT;
ALTER TABLE idempotency_calls ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_calls ADD COLUMN status TEXT;
ALTER TABLE idempotency_evidence ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_evidence ADD COLUMN call_name TEXT;
ALTER TABLE idempotency_audit ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_contracts ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_settings ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_progress ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
CREATE INDEX idempotency_requests_later ON idempotency_requests (created_at);
CREATE TABLE idempotency_later (tenant_id TEXT NOT NULL, status TEXT NOT NULL) STRICT;
INSERT INTO idempotency_migrations (version, name, oldest, checksum) VALUES (1001, 'later', 1, X'00')";

async fn expanded() -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    SqliteStore::migrate(&file).await.unwrap();
    run(&file, NEXT).await;
    (SqliteStore::open(&file).await.unwrap(), directory)
}

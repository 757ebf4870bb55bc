//! What both databases call things, so that rows can be moved from one to the other.

use std::collections::BTreeSet;

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

/// The same tables and columns in both, but for those that the documentation names.
#[tokio::test]
async fn both_databases_have_the_same_columns() {
    let (_store, database) = super::postgres::temporary().await;
    let mut connection = database.options().connect().await.unwrap();
    // A day's partition has its table's columns.
    let columns = "SELECT table_name || '.' || column_name FROM information_schema.columns
        WHERE table_schema = 'idem' AND table_name NOT LIKE 'idempotency!_bodies!_%' ESCAPE '!'";
    let postgres: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut connection).await.unwrap();

    let (store, _directory) = super::sqlite::temporary().await;
    let mut connection = SqliteConnectOptions::new().filename(store.file()).connect().await.unwrap();
    let columns = "SELECT t.name || '.' || c.name FROM sqlite_master t, pragma_table_xinfo(t.name) c
        WHERE t.type = 'table' AND t.name LIKE 'idempotency!_%' ESCAPE '!'";
    let sqlite: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut connection).await.unwrap();

    let differences = |these: &[String], those: &[String]| -> BTreeSet<String> {
        these.iter().filter(|column| !those.contains(column)).cloned().collect()
    };
    assert_eq!(differences(&sqlite, &postgres), BTreeSet::new(), "only SQLite has them");
    assert_eq!(differences(&postgres, &sqlite), ONLY_POSTGRES.map(str::to_owned).into(), "only PostgreSQL has them");
    let documentation = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let documentation = std::fs::read_to_string(documentation).unwrap();
    for column in ONLY_POSTGRES {
        let (table, column) = column.split_once('.').unwrap();
        let named = documentation.contains(&format!("`{column}`")) || documentation.contains(&format!("`{table}`"));
        assert!(named, "{table}.{column} is not documented");
    }
}

const ONLY_POSTGRES: [&str; 12] = [
    "idempotency_bodies.body",
    "idempotency_bodies.day",
    "idempotency_bodies.fence",
    "idempotency_bodies.idempotency_key",
    "idempotency_bodies.operation_name",
    "idempotency_bodies.tenant_id",
    "idempotency_outbox_lines.appended_at",
    "idempotency_outbox_lines.ordering_key",
    "idempotency_outbox_lines.topic",
    "idempotency_requests.body_day",
    "idempotency_requests.sweep_at",
    "idempotency_store.id",
];

//! On SQLite.

use std::time::Duration;

use idem_core::StoreError;
use idem_core::store::Evidence;
use idem_sqlx::SqliteStore;
use idem_sqlx::outbox::{DeadLetters, Relayed};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, Transaction};

use super::broker::{Broker, Fault};
use super::webhooks::Learns;
use super::{Place, promises};

promises!(Beside<false>);

/// The schema as the next release leaves it: columns come, with a default or without.
mod expanded {
    use super::{Beside, promises};

    promises!(Beside<true>);
}

/// The application's pool, and idem's tables beside its own.
struct Beside<const EXPANDED: bool> {
    pool: SqlitePool,
    store: SqliteStore,
    _directory: tempfile::TempDir,
}

const NEXT: &str = "
ALTER TABLE idempotency_outbox ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_outbox ADD COLUMN now INTEGER;
ALTER TABLE idempotency_inbox ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE idempotency_inbox ADD COLUMN state TEXT;
INSERT INTO idempotency_migrations (version, name, oldest, checksum) VALUES (1001, 'later', 1, X'00')";

impl<const EXPANDED: bool> Place for Beside<EXPANDED> {
    type Db = Sqlite;
    type Store = SqliteStore;

    const SCHEMA: &'static str = "";
    const PAST: &'static str = "0";
    const LOCK: &'static str = "";

    async fn fresh() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("app.db"))
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(60));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
        // A parent that is missing is noticed by the commit.
        let table = "CREATE TABLE rows (name TEXT PRIMARY KEY, parent TEXT REFERENCES rows (name)
            DEFERRABLE INITIALLY DEFERRED) STRICT";
        sqlx::raw_sql(table).execute(&pool).await.unwrap();
        if EXPANDED {
            SqliteStore::beside(&pool).await.unwrap().close().await;
            sqlx::raw_sql(NEXT).execute(&pool).await.unwrap();
        }
        let store = SqliteStore::beside(&pool).await.unwrap();
        Self { pool, store, _directory: directory }
    }

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn begin(&self) -> Transaction<'static, Sqlite> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
    }

    async fn insert(tx: &mut Transaction<'static, Sqlite>, row: &str) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT INTO rows (name) VALUES (?1)").bind(row).execute(&mut **tx).await?;
        Ok(())
    }

    async fn doom(tx: &mut Transaction<'static, Sqlite>) {
        sqlx::query("INSERT INTO rows (name, parent) VALUES ('orphan', 'nobody')").execute(&mut **tx).await.unwrap();
    }

    async fn run(&self, sql: String) {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&self.pool).await.unwrap();
    }

    async fn number(&self, sql: String) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    async fn texts(&self, sql: String) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&self.pool).await.unwrap()
    }
}

impl<const EXPANDED: bool> Learns for Beside<EXPANDED> {
    async fn evidence_in(
        &self,
        tx: &mut Transaction<'static, Sqlite>,
        evidence: &Evidence,
    ) -> Result<bool, StoreError> {
        self.store.evidence_in(tx, evidence).await
    }
}

/// The file is locked, and the relay is stopped while it waits for it. What it asked for it has not taken: nobody waits for
/// the end of its lease, and no attempt is counted.
#[tokio::test]
async fn a_taking_that_nobody_waits_for_is_none() {
    let place = Beside::<false>::fresh().await;
    place.append(&[("e1", "a"), ("e2", "b")]).await;
    let broker = Broker::new();
    let relay = place.relay(&broker);
    let lock = place.begin().await;
    for _ in 0..3 {
        let relay = place.relay(&broker);
        let asking = tokio::spawn(async move { relay.relay_once(100).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!asking.is_finished(), "it does not wait for the file");
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
    }
    lock.rollback().await.unwrap();
    // Behind all of that, at the one writer.
    relay.clean_once(100).await.unwrap();
    assert_eq!(place.count("outbox WHERE attempts > 0 OR owner_token IS NOT NULL").await, 0);
    assert_eq!(relay.relay_once(100).await.unwrap().published, 2);
}

/// The same of the next event of a line: the one that is out is marked, and the next one left to others.
#[tokio::test]
async fn a_next_event_that_nobody_waits_for_is_not_taken() {
    let place = Beside::<false>::fresh().await;
    place.append(&[("e1", "a"), ("e2", "a")]).await;
    let broker = Broker::new().will("e1", [Fault::TakesAndHangs]);
    let relay = place.relay(&broker);
    let marking = tokio::spawn(async move { relay.relay_once(100).await });
    broker.hangs().await;
    let lock = place.begin().await;
    broker.goes_on();
    tokio::time::sleep(Duration::from_millis(100)).await;
    marking.abort();
    assert!(marking.await.unwrap_err().is_cancelled());
    lock.rollback().await.unwrap();
    let relay = place.relay(&broker);
    relay.clean_once(100).await.unwrap();
    assert_eq!(place.count("outbox WHERE state = 'published'").await, 1);
    assert_eq!(place.count("outbox WHERE attempts > 0 AND state = 'waiting'").await, 0);
    assert_eq!(relay.relay_once(100).await.unwrap().published, 1);
    assert_eq!(broker.got(), ["e1", "e2"]);
}

/// Thousands may wait behind a dead letter, and each look would step over all of them, with the file locked. Where they were
/// put does not matter once it is their turn: by whom ever, and however the one before them goes.
#[tokio::test]
async fn events_behind_a_dead_letter_are_out_of_the_way_until_it_is_gone() {
    let due = "outbox WHERE state = 'waiting' AND due_at <= unixepoch('subsec') * 1000";
    for (skipped, limit) in [(false, 100), (true, 100), (false, 1), (true, 1)] {
        let place = Beside::<false>::fresh().await;
        place.append(&[("a1", "a"), ("a2", "a"), ("a3", "a")]).await;
        let broker = Broker::new().will("a1", [Fault::Refuses]);
        let relay = place.relay(&broker);
        assert_eq!(relay.relay_once(100).await.unwrap().dead, 1);
        place.append(&[("a4", "a")]).await;
        assert_eq!(place.count(due).await, 0, "they were appended behind another one");
        // By some other way they are due: the clean-up puts them out of the way.
        place.hasten().await;
        assert_eq!(place.count(due).await, 3);
        assert_eq!(relay.clean_once(2).await.unwrap(), 2);
        assert_eq!(relay.clean_once(100).await.unwrap(), 1);
        assert_eq!((relay.clean_once(100).await.unwrap(), place.count(due).await), (0, 0));
        let dead = DeadLetters::of(place.store().clone());
        match skipped {
            true => dead.skip("a1", "ada", "because").await.unwrap(),
            false => dead.redrive("a1", "ada", "because").await.unwrap(),
        }
        while relay.relay_once(limit).await.unwrap().published > 0 {}
        let all = ["a1", "a2", "a3", "a4"];
        assert_eq!(broker.got(), all[usize::from(skipped)..], "skipped: {skipped}, limit: {limit}");
    }
}

/// SQLite takes any bytes for a text. The row whose id is none has no name to be put back by; it is seen all the same.
#[tokio::test]
async fn a_text_that_is_none_is_a_dead_letter() {
    let place = Beside::<false>::fresh().await;
    place.append(&[("a1", "a"), ("b1", "b"), ("c1", "c")]).await;
    let spoil = |column, id| {
        let sql = format!("UPDATE idempotency_outbox SET {column} = CAST(X'61ff' AS TEXT) WHERE event_id = '{id}'");
        place.run(sql)
    };
    spoil("event_type", "a1").await;
    spoil("event_id", "b1").await;
    let broker = Broker::new();
    let relayed = place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(relayed, Relayed { published: 1, dead: 2, ..Relayed::default() });
    let letters = DeadLetters::of(place.store().clone()).list(10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| letter.id.as_str()).collect::<Vec<_>>(), ["a1", "a\u{fffd}"]);
    assert_eq!(broker.got(), ["c1"]);
}

//! On PostgreSQL.

use std::time::Duration;

use futures_util::FutureExt;
use idem_cluster::{Cluster, Database};
use idem_core::StoreError;
use idem_core::store::Evidence;
use idem_sqlx::outbox;
use idem_sqlx::{PgOptions, PgStore};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};

use super::broker::Broker;
use super::webhooks::Learns;
use super::{Place, event, promises};

promises!(Beside<false>);

/// The schema as the next release leaves it: columns come, with a default or without.
mod expanded {
    use super::{Beside, promises};

    promises!(Beside<true>);
}

/// The application's pool, and idem's tables beside its own.
struct Beside<const EXPANDED: bool> {
    pool: PgPool,
    store: PgStore,
    _database: Database,
}

const NEXT: &str = "
ALTER TABLE idem.idempotency_outbox ADD COLUMN later text NOT NULL DEFAULT 'x', ADD COLUMN t timestamptz,
    ADD COLUMN done bigint, ADD COLUMN first text;
ALTER TABLE idem.idempotency_outbox DROP CONSTRAINT idempotency_outbox_state_check, ADD CHECK (state <> '');
ALTER TABLE idem.idempotency_outbox_lines ADD COLUMN later text NOT NULL DEFAULT 'x', ADD COLUMN finished_at bigint;
ALTER TABLE idem.idempotency_inbox ADD COLUMN later text NOT NULL DEFAULT 'x', ADD COLUMN t bigint,
    ADD COLUMN first text;
INSERT INTO idem.idempotency_migrations (version, name, oldest, checksum) VALUES (1001, 'later', 1, '')";

impl<const EXPANDED: bool> Place for Beside<EXPANDED> {
    type Db = Postgres;
    type Store = PgStore;

    const SCHEMA: &'static str = "idem.";
    const PAST: &'static str = "'-infinity'";
    const LOCK: &'static str = "FOR UPDATE";

    async fn fresh() -> Self {
        let database = Cluster::shared().database().await;
        PgStore::migrate(database.options()).await.unwrap();
        database
            .run(
                "CREATE TABLE rows (name text PRIMARY KEY,
            parent text REFERENCES rows DEFERRABLE INITIALLY DEFERRED)",
            )
            .await;
        if EXPANDED {
            database.run(NEXT).await;
        }
        let pool = PgPool::connect_with(database.options()).await.unwrap();
        // A slow machine must not decide a test: nothing times out.
        let long = Duration::from_secs(60);
        let options = PgOptions::from(&pool).lock_timeout(long).statement_timeout(long).acquire_timeout(long);
        let store = PgStore::connect(options).await.unwrap();
        Self { pool, store, _database: database }
    }

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn begin(&self) -> Transaction<'static, Postgres> {
        self.pool.begin().await.unwrap()
    }

    async fn insert(tx: &mut Transaction<'static, Postgres>, row: &str) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT INTO rows (name) VALUES ($1)").bind(row).execute(&mut **tx).await?;
        Ok(())
    }

    async fn doom(tx: &mut Transaction<'static, Postgres>) {
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
        tx: &mut Transaction<'static, Postgres>,
        evidence: &Evidence,
    ) -> Result<bool, StoreError> {
        self.store.evidence_in(tx, evidence).await
    }
}

/// Two transactions at once: only those of one key wait for each other.
#[tokio::test]
async fn transactions_of_other_keys_do_not_wait() {
    let place = Beside::<false>::fresh().await;
    let mut first = place.begin().await;
    outbox::append(&mut first, &event("a1", "a")).await.unwrap();
    place.append(&[("b1", "b")]).await;
    let broker = Broker::new();
    place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(broker.got(), ["b1"]);
    first.rollback().await.unwrap();
    place.append(&[("a2", "a")]).await;
    place.relay(&broker).relay_once(100).await.unwrap();
    assert_eq!(broker.got(), ["b1", "a2"]);
}

/// The clean-up takes a line's lock away while somebody waits for it: he makes it anew, and the next one waits for him.
#[tokio::test]
async fn a_line_that_is_cleaned_up_still_orders_its_events() {
    let place = &Beside::<false>::fresh().await;
    place.append(&[("e1", "a")]).await;
    let broker = Broker::new();
    let options = outbox::RelayOptions { retention: Duration::ZERO, ..super::patient() };
    let relay = place.relay(&broker).options(options);
    relay.relay_once(100).await.unwrap();
    for (id, next) in [("e2", "e3"), ("e4", "e5"), ("e6", "e7")] {
        let mut first = place.begin().await;
        while relay.clean_once(100).await.unwrap() > 0 {}
        outbox::append(&mut first, &event(id, "a")).await.unwrap();
        // Held, so it stays.
        assert_eq!(relay.clean_once(100).await.unwrap(), 0);
        let next = [(next, "a")];
        let mut second = Box::pin(place.append(&next));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut second).await.is_err());
        first.commit().await.unwrap();
        second.await;
        relay.relay_once(100).await.unwrap();
    }
    assert_eq!(broker.got(), ["e1", "e2", "e3", "e4", "e5", "e6", "e7"]);
}

/// Thousands may wait behind a dead letter, and each look would step over all of them. Where they were put does not
/// matter once it is their turn: by whom ever, and however the one before them goes.
#[tokio::test]
async fn events_behind_a_dead_letter_are_out_of_the_way_until_it_is_gone() {
    for (skipped, limit) in [(false, 100), (true, 100), (false, 1), (true, 1)] {
        let place = Beside::<false>::fresh().await;
        place.append(&[("a1", "a"), ("a2", "a"), ("a3", "a"), ("a4", "a")]).await;
        let broker = Broker::new().will("a1", [super::broker::Fault::Refuses]);
        let relay = place.relay(&broker);
        assert_eq!(relay.relay_once(100).await.unwrap().dead, 1);
        assert_eq!(relay.clean_once(100).await.unwrap(), 0, "they have only just come");
        let aged = "UPDATE idem.idempotency_outbox SET due_at = due_at - interval '1 minute'";
        place.run(aged.to_owned()).await;
        assert_eq!(relay.clean_once(2).await.unwrap(), 2);
        assert_eq!(relay.clean_once(100).await.unwrap(), 1);
        assert_eq!(place.count("outbox WHERE state = 'waiting' AND due_at > now() + interval '50 seconds'").await, 3);
        let dead = outbox::DeadLetters::of(place.store().clone());
        match skipped {
            true => dead.skip("a1", "ada", "because").await.unwrap(),
            false => dead.redrive("a1", "ada", "because").await.unwrap(),
        }
        while relay.relay_once(limit).await.unwrap().published > 0 {}
        let all = ["a1", "a2", "a3", "a4"];
        assert_eq!(broker.got(), all[usize::from(skipped)..], "skipped: {skipped}, limit: {limit}");
    }
}

/// A person who puts a topic back must not hold locks on all of it: where one letter is in somebody's hands, the batches
/// before it are put back already.
#[tokio::test]
async fn a_topic_is_put_back_in_batches() {
    let place = Beside::<false>::fresh().await;
    let ids: Vec<_> = (0..600).map(|number| format!("e{number:04}")).collect();
    place.append(&ids.iter().map(|id| (id.as_str(), id.as_str())).collect::<Vec<_>>()).await;
    place.run("UPDATE idem.idempotency_outbox SET state = 'dead'".to_owned()).await;
    let mut held = place.begin().await;
    let hold = "SELECT 1 FROM idem.idempotency_outbox WHERE event_id = 'e0599' FOR UPDATE";
    sqlx::query(hold).fetch_one(&mut *held).await.unwrap();
    let dead = outbox::DeadLetters::of(place.store().clone());
    let redriving = tokio::spawn(async move { dead.redrive_topic("payments", "ada", "because").await.unwrap() });
    while place.count("outbox WHERE state = 'waiting'").await == 0 {
        assert!(!redriving.is_finished());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    held.rollback().await.unwrap();
    assert_eq!(redriving.await.unwrap(), 600);
}

/// A second delivery waits for the first one, and does what that one leaves it.
#[tokio::test]
async fn a_delivery_waits_for_the_one_before_it() {
    use idem_sqlx::inbox::{self, Consumer, Marked, Seen};
    let place = &Beside::<false>::fresh().await;
    let consumer = &Consumer::new("ledger").unwrap();
    for (id, fails) in [("m1", true), ("m2", false)] {
        let gate = &tokio::sync::Semaphore::new(0);
        let first = |tx: Marked<'static, Postgres>| async move {
            gate.acquire().await?.forget();
            if fails { Err("closed".into()) } else { Ok((tx, ())) }
        };
        let mut first = Box::pin(inbox::once(place.begin().await, consumer, id, first));
        assert!((&mut first).now_or_never().is_none());
        // It has marked.
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut first).await.is_err());
        let second = |tx: Marked<'static, Postgres>| async move { Ok((tx, ())) };
        let mut second = Box::pin(inbox::once(place.begin().await, consumer, id, second));
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut second).await.is_err(), "it does not wait");
        gate.add_permits(1);
        assert_eq!(first.await.is_err(), fails);
        assert_eq!(second.await.unwrap(), if fails { Seen::First(()) } else { Seen::Again });
    }
}

/// Each statement of a relay finds its rows by an index, also where a table is long.
#[tokio::test]
async fn a_long_table_is_not_read_through() {
    let place = Beside::<false>::fresh().await;
    let columns = "appended_at, due_at, schema_version, event_id, topic, ordering_key, event_type, state, payload";
    place
        .run(format!(
            "INSERT INTO idem.idempotency_outbox ({columns}) SELECT now(), now(), 1, 'e' || n, 't', 'k' || n % 5000,
            'paid', 'waiting', '' FROM generate_series(1, 20000) AS n;
            INSERT INTO idem.idempotency_inbox (seen_at, purge_at, consumer, event_id)
            SELECT now(), now() + interval '1 day', 'c', 'e' || n FROM generate_series(1, 20000) AS n;
            ANALYZE idem.idempotency_outbox; ANALYZE idem.idempotency_inbox; SELECT pg_stat_reset()"
        ))
        .await;
    let broker = Broker::new();
    assert_eq!(place.relay(&broker).relay_once(200).await.unwrap().published, 200);
    place.relay(&broker).clean_once(100).await.unwrap();
    idem_sqlx::inbox::clean_once(place.store(), 100).await.unwrap();
    let tables = "FROM pg_stat_user_tables WHERE relname IN ('idempotency_outbox', 'idempotency_inbox')";
    // The server counts with a delay.
    while place.number(format!("SELECT sum(idx_scan)::bigint {tables}")).await < 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(place.number(format!("SELECT sum(seq_scan)::bigint {tables}")).await, 0);
}

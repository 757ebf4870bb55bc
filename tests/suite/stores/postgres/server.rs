//! What the server and its schema are: missing, older, newer, edited, read-only, forgetful, gone for a moment.

use std::time::Duration;

use futures_util::future::join_all;
use idem_cluster::{Cluster, Database, free_port};
use idem_core::StoreError;
use idem_core::store::{Claiming, Fenced, Owning, SweepOrder, Sweeping};
use idem_sqlx::{PgOptions, PgStore};
use sqlx::ConnectOptions;

use super::{LONG, cause, completed, finish, inserts, new_claim, options, ownership, temporary};
use crate::stores::damage_is_passed_over;

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let error = PgStore::open(PgOptions::new("no url at all").unwrap_or_else(|error| {
        assert_eq!(error.code(), "DATABASE_NOT_REACHABLE");
        PgOptions::new(&format!("postgres://nobody@127.0.0.1:{}/idem", free_port())).unwrap()
    }));
    assert_eq!(error.await.unwrap_err().code(), "DATABASE_NOT_REACHABLE");
}

#[tokio::test]
async fn a_database_without_tables_is_not_migrated_by_connecting() {
    let database = empty().await;
    assert_eq!(PgStore::connect(options(&database)).await.unwrap_err().code(), "SCHEMA_MISSING");
    PgStore::migrate(options(&database)).await.unwrap();
    PgStore::migrate(options(&database)).await.unwrap();
    assert!(inserts(&PgStore::connect(options(&database)).await.unwrap(), &new_claim("key-1", LONG)).await);
}

#[tokio::test]
async fn the_printed_schema_is_the_schema() {
    let database = empty().await;
    database.run(PgStore::schema_sql()).await;
    assert!(inserts(&PgStore::connect(options(&database)).await.unwrap(), &new_claim("key-1", LONG)).await);
    PgStore::open(options(&database)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_nodes_may_start_at_once() {
    let database = empty().await;
    let opened = (0..8).map(|_| tokio::spawn(PgStore::open(options(&database))));
    for store in join_all(opened).await {
        store.unwrap().unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_migrations").await, 2);
}

/// A database that the release before made, with its records.
#[tokio::test]
async fn a_step_that_is_missing_is_made_and_the_others_are_not_made_again() {
    let (store, database) = temporary().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let before = "DROP TABLE idem.idempotency_outbox, idem.idempotency_outbox_lines, idem.idempotency_inbox;
        DELETE FROM idem.idempotency_migrations WHERE version > 1";
    database.run(before).await;
    assert_eq!(PgStore::connect(options(&database)).await.unwrap_err().code(), "SCHEMA_TOO_OLD");
    let store = PgStore::open(options(&database)).await.unwrap();
    assert!(!inserts(&store, &claim).await);
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_outbox").await, 0);
}

#[tokio::test]
async fn a_schema_of_a_newer_release_is_used_only_where_it_allows_that() {
    let (_store, database) = temporary().await;
    let newer = |version: i64, oldest: i64| {
        let columns = "idem.idempotency_migrations (version, name, oldest, checksum)";
        format!("INSERT INTO {columns} VALUES ({version}, 'later', {oldest}, '')")
    };
    // As the next release would: a column that this one does not know.
    database.run(newer(1001, 1)).await;
    database.run("ALTER TABLE idem.idempotency_requests ADD COLUMN later text NOT NULL DEFAULT 'x'").await;
    let store = PgStore::connect(options(&database)).await.unwrap();
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    assert!(matches!(store.finish(&ownership(&claim), &finish(completed("{}"))).await, Ok(Fenced::Written { .. })));
    database.run(newer(1002, 1001)).await;
    for opened in [PgStore::connect(options(&database)).await, PgStore::open(options(&database)).await] {
        assert_eq!(opened.unwrap_err().code(), "SCHEMA_TOO_NEW");
    }
}

#[tokio::test]
async fn an_edited_migration_is_noticed() {
    let (_store, database) = temporary().await;
    database.run("UPDATE idem.idempotency_migrations SET checksum = ''").await;
    for opened in [PgStore::connect(options(&database)).await, PgStore::open(options(&database)).await] {
        assert_eq!(opened.unwrap_err().code(), "SCHEMA_EDITED");
    }
}

#[tokio::test]
async fn a_damaged_row_is_named_and_never_owned() {
    for (column, value) in [("status", "'done'"), ("request_hash", "'x'"), ("fence", "0"), ("resource_id", "'x'")] {
        let (store, database) = temporary().await;
        let claim = new_claim("key-1", LONG);
        assert!(inserts(&store, &claim).await);
        let checks = format!(
            "ALTER TABLE idem.idempotency_requests DROP CONSTRAINT IF EXISTS idempotency_requests_{column}_check"
        );
        database.run(format!("{checks}; UPDATE idem.idempotency_requests SET {column} = {value}")).await;
        match store.claim(&claim).await {
            Err(StoreError::Unreadable(named)) => assert_eq!(named, column),
            other => panic!("{column}: {other:?}"),
        }
    }
}

/// A worker gets to all the others, however small its pages are, and is told which one is damaged.
#[tokio::test]
async fn a_damaged_row_hides_no_other_from_the_worker() {
    let (store, database) = temporary().await;
    for key in 1..=5 {
        assert!(inserts(&store, &new_claim(&format!("key-{key}"), Duration::ZERO)).await);
    }
    let checks = "ALTER TABLE idem.idempotency_requests DROP CONSTRAINT idempotency_requests_fence_check";
    let damage = "SET fence = 0 WHERE idempotency_key IN ('key-1', 'key-3', 'key-5')";
    database.run(format!("{checks}; UPDATE idem.idempotency_requests {damage}")).await;
    damage_is_passed_over(&store).await;
}

#[tokio::test]
async fn a_missing_table_is_unusable() {
    let (store, database) = temporary().await;
    database.run("DROP SCHEMA idem CASCADE").await;
    let error = store.claim(&new_claim("key-1", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "SCHEMA_MISSING"));
    assert!(!error.is_transient());
}

/// A server that only reads is refused at the start; one that becomes so later is expected back.
#[tokio::test]
async fn a_read_only_server_is_told_apart() {
    let (store, database) = temporary().await;
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
    let name = database.name();
    let turned = |to: &str| format!("ALTER DATABASE {name} SET default_transaction_read_only = {to}");
    database.run(turned("on")).await;
    disconnect(&database).await;
    for opened in [PgStore::connect(options(&database)).await, PgStore::open(options(&database)).await] {
        assert_eq!(opened.unwrap_err().code(), "DATABASE_IS_REPLICA");
    }
    // The first answer may be of the connection that was cut.
    let claim = new_claim("key-2", LONG);
    let _cut = store.claim(&claim).await;
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_IS_REPLICA"));
    let mut primary = database.options().options([("default_transaction_read_only", "off")]).connect().await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(turned("off"))).execute(&mut primary).await.unwrap();
    disconnect(&database).await;
    let _cut = store.claim(&claim).await;
    inserts(&store, &claim).await;
    assert_eq!(store.record(&claim.scope).await.unwrap().unwrap().owner, claim.owner);
}

/// A claim that a crash forgets is a payment made twice; only who says so gets that.
#[tokio::test]
async fn a_forgetful_server_is_refused_unless_said_by_name() {
    let (_store, database) = temporary().await;
    database.run(format!("ALTER DATABASE {} SET synchronous_commit = off", database.name())).await;
    let error = PgStore::connect(options(&database)).await.unwrap_err();
    assert_eq!(error.code(), "DATABASE_COMMITS_ASYNCHRONOUSLY");
    assert!(error.to_string().contains("claims_may_be_forgotten"), "{error}");
    let store = PgStore::connect(options(&database).claims_may_be_forgotten()).await.unwrap();
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
}

/// A role that is made forgetful while the store runs: connections that are opened later, idem's own and those of work
/// in a transaction, wait for the disk all the same. Only who said so by name does without.
#[tokio::test]
async fn a_server_that_turns_forgetful_makes_no_claim_forgettable() {
    for (may_forget, expected) in [(false, "on"), (true, "off")] {
        let (_store, database) = temporary().await;
        let options = || if may_forget { options(&database).claims_may_be_forgotten() } else { options(&database) };
        let store = PgStore::connect(options()).await.unwrap();
        let (port, _running) = super::proxy::proxy(&database).await;
        let proxied = PgOptions::from(port).behind_transaction_proxy();
        let proxied = if may_forget { proxied.claims_may_be_forgotten() } else { proxied };
        let proxied = PgStore::connect(proxied).await.unwrap();
        assert!(inserts(&store, &new_claim("key-1", LONG)).await);
        database
            .run(
                "CREATE TABLE durability (says text);
                CREATE FUNCTION durability() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    INSERT INTO durability VALUES (current_setting('synchronous_commit'));
                    RETURN NEW;
                END $$;
                CREATE TRIGGER durability BEFORE INSERT ON idem.idempotency_requests
                    FOR EACH ROW EXECUTE FUNCTION durability()",
            )
            .await;
        database.run(format!("ALTER DATABASE {} SET synchronous_commit = off", database.name())).await;
        disconnect(&database).await;
        for (store, key) in [(&store, "key-2"), (&proxied, "key-3")] {
            let claim = new_claim(key, LONG);
            // The first answers may be of connections that were cut.
            let mut tries = 0;
            while store.claim(&claim).await.is_err() {
                tries += 1;
                assert!(tries < 20);
            }
        }
        let mut connection = database.options().connect().await.unwrap();
        let said: Vec<String> =
            sqlx::query_scalar("SELECT says FROM durability").fetch_all(&mut connection).await.unwrap();
        assert!(said.len() >= 2 && said.iter().all(|said| said == expected), "{said:?}");
        let mut tx = idem_core::store::TxStore::begin(&store).await.unwrap();
        let said: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut *tx).await.unwrap();
        assert_eq!(said, expected);
    }
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let (store, _database) = temporary().await;
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
    store.clone().close().await;
    let error = store.claim(&new_claim("key-2", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_CLOSED"));
}

/// Cut connections are an error that may be tried again, and soon it works; a claim whose answer was lost is known by
/// its own token.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_are_replaced() {
    let (store, database) = temporary().await;
    for round in 0..10 {
        let claim = new_claim(&format!("key-{round}"), LONG);
        let (claiming, ()) = tokio::join!(store.claim(&claim), disconnect(&database));
        if let Err(error) = claiming {
            assert!(error.is_transient(), "{error:?}");
        }
        let mut tries = 0;
        while let Err(error) = store.claim(&claim).await {
            assert!(error.is_transient() && tries < 20, "{error:?}");
            tries += 1;
        }
        assert_eq!(store.record(&claim.scope).await.unwrap().unwrap().owner, claim.owner);
    }
}

/// A large body lies in the partition of the day on which its retention ends, comes back byte by byte, and is gone when
/// that day is dropped; the record is not.
#[tokio::test]
async fn large_bodies_live_in_the_partition_of_their_last_day() {
    let (store, database) = temporary().await;
    let body: Vec<u8> = (0..65_536_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    store.finish(&ownership(&claim), &finish(completed(body.clone()))).await.unwrap();
    let kept = async |store: &PgStore| match store.record(&claim.scope).await.unwrap().unwrap().status {
        idem_core::Status::Completed(finished) => finished.response.body,
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(&store).await, Some(body.clone()));
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_bodies").await, 1);
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_bodies_default").await, 0);
    // A day later, as far as the days are concerned.
    database.run("SELECT idem.drop_body_days((now() AT TIME ZONE 'UTC')::date + 2)").await;
    assert_eq!(kept(&store).await, None);

    // Without a partition for its day it lies in the default one, and is deleted when its day is over.
    let claim = new_claim("key-2", LONG);
    assert!(inserts(&store, &claim).await);
    store.finish(&ownership(&claim), &finish(completed(body))).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_bodies_default").await, 1);
    database.run("UPDATE idem.idempotency_bodies_default SET day = day - 2").await;
    store.sweep(SweepOrder { limit: 10, purge_tombstones: false }).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM idem.idempotency_bodies_default").await, 0);
    // The sweeper has made the days to come.
    let days = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'idem.idempotency_bodies'::regclass";
    assert_eq!(database.number(days).await, 4);
}

/// A record that a worker missed is found by the sweeper, and handed to him.
#[tokio::test]
async fn the_sweeper_hands_forgotten_records_to_the_worker() {
    let (store, database) = temporary().await;
    let claim = new_claim("key-1", Duration::ZERO);
    assert!(inserts(&store, &claim).await);
    database.run("UPDATE idem.idempotency_progress SET at = 'infinity'").await;
    let due = async || idem_core::store::Recovering::due(&store, Duration::ZERO, None, 10).await.unwrap().len();
    assert_eq!(due().await, 0);
    database.run("UPDATE idem.idempotency_requests SET sweep_at = now()").await;
    store.sweep(SweepOrder { limit: 10, purge_tombstones: false }).await.unwrap();
    assert_eq!(due().await, 1);
}

async fn empty() -> Database {
    Cluster::shared().database().await
}

/// Cuts every connection to the database.
async fn disconnect(database: &Database) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = ";
    database.run(format!("{cut}'{}'", database.name())).await;
}

//! What a replay and a completion cost the server, and that no statement reads a whole table.

use std::time::Duration;

use idem_core::Keep;
use idem_core::store::{Claimed, Claiming, Owning};
use idem_sqlx::PgStore;

use super::{KEEP, LONG, completed, finish, inserts, new_claim, options, ownership};
use crate::support::postgres::{Cluster, Database};

/// A replay writes nothing at all: not one byte of WAL.
#[tokio::test]
async fn a_replay_writes_no_wal() {
    let (store, database) = alone().await;
    for key in 0..20 {
        let claim = new_claim(&format!("key-{key}"), LONG);
        assert!(inserts(&store, &claim).await);
        if key % 2 == 0 {
            store.finish(&ownership(&claim), &finish(completed(vec![b'x'; 100 * key]))).await.unwrap();
        }
    }
    // A reader may tidy a page up that a writer left behind; that is the writer's cost.
    database.run("VACUUM FREEZE").await;
    let replay = async || {
        for key in 0..20 {
            assert!(!inserts(&store, &new_claim(&format!("key-{key}"), LONG)).await);
        }
    };
    replay().await;
    let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let before = database.number(position).await;
    for _ in 0..20 {
        replay().await;
    }
    assert_eq!(database.number(position).await - before, 0, "bytes of WAL for 400 replays");
    // The measure measures.
    assert!(inserts(&store, &new_claim("key-20", LONG)).await);
    assert!(database.number(position).await > before);
}

/// A completion whose window is a day or longer changes no indexed column, so that it writes no index.
#[tokio::test]
async fn a_completion_is_a_hot_update() {
    let (store, database) = alone().await;
    complete(&store, "day", KEEP).await;
    let (updates, hot) = updates(&database, store).await;
    println!("{hot} of {updates} completions were HOT");
    assert!(updates >= 500 && hot * 100 >= updates * 95, "{hot} of {updates}");
}

/// The price of a shorter window: the row takes another place in the sweeper's line.
#[tokio::test]
async fn a_completion_with_a_short_window_is_none() {
    let (store, database) = alone().await;
    let hour = Duration::from_secs(60 * 60);
    complete(&store, "hour", Keep { window: hour, body: hour, ..KEEP }).await;
    let (updates, hot) = updates(&database, store).await;
    assert!(updates >= 500 && hot == 0, "{hot} of {updates}");
}

async fn complete(store: &PgStore, name: &str, keep: Keep) {
    let response = idem_core::StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; 600]) };
    let end = idem_core::store::End::Completed { response, keep };
    for key in 0..500 {
        let claim = new_claim(&format!("{name}-{key}"), LONG);
        assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
        store.finish(&ownership(&claim), &finish(end.clone())).await.unwrap();
    }
}

/// Updates of records, and those of them that wrote no index. A session tells its figures when it ends.
async fn updates(database: &Database, store: PgStore) -> (i64, i64) {
    store.close().await;
    let figure = async |name: &str| {
        let table = "FROM pg_stat_user_tables WHERE relname = 'idempotency_requests'";
        database.number(format!("SELECT {name} {table}")).await
    };
    while figure("n_tup_upd").await < 500 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (figure("n_tup_upd").await, figure("n_tup_hot_upd").await)
}

/// A store on a server that does nothing else, and nothing by itself.
async fn alone() -> (PgStore, Database) {
    let settings = ["fsync=off", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0"];
    // For the rest of the process: its end stops the server.
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(&settings)));
    let database = cluster.database().await;
    let store = PgStore::open(options(&database)).await.unwrap();
    (store, database)
}

//! What a replay and a completion cost the server, and that no statement reads a whole table.

use std::time::Duration;

use idem_cluster::{Cluster, Database};
use idem_core::store::{
    Answered, AnsweredEnd, AuditEntry, Claimed, Claiming, ClosedCall, End, Evidence, Guarded, Keeping, NewCall, Owning,
    Recovering, Seen, Step, SweepOrder, Sweeping, Swept, TakeOver, Tended, Verdicted,
};
use idem_core::{CallClass, CallState, DownstreamKey, Keep, OwnerToken, Ownership, StoredResponse};
use idem_sqlx::PgStore;

use super::{KEEP, LONG, completed, finish, inserts, new_claim, options, ownership};

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

/// Every statement finds its rows by an index. A planner that may not scan a table does so only where it has to.
#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let (store, database) = alone().await;
    store.close().await;
    database.run(format!("ALTER DATABASE {} SET enable_seqscan = off", database.name())).await;
    // What the planner's choice of statements was, before it was told so, does not count.
    database.run("SELECT pg_stat_reset()").await;
    let store = PgStore::connect(options(&database).connections(1)).await.unwrap();
    for round in 0..8 {
        everything(&store, &format!("key-{round}")).await;
    }
    store.close().await;
    let tables = "FROM pg_stat_user_tables WHERE relname LIKE 'idempotency_%'
        AND relname NOT IN ('idempotency_store', 'idempotency_migrations')";
    while database.number(format!("SELECT sum(idx_scan)::bigint {tables}")).await < 100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(database.number(format!("SELECT sum(seq_scan)::bigint {tables}")).await, 0);
}

/// Each statement of the store once.
async fn everything(store: &PgStore, key: &str) {
    let claim = new_claim(key, LONG);
    assert!(inserts(store, &claim).await);
    assert!(!inserts(store, &claim).await);
    let owner = ownership(&claim);
    let name = DownstreamKey::from_stored(format!("charge_{key}"));
    let open = Some(NewCall { name: "charge".into(), class: CallClass::Neither, key: name.clone() });
    let step = Step { closed: Vec::new(), open, resource: None, checkpoint: None, lease: Duration::ZERO };
    store.step(&owner, &step).await.unwrap();
    store.step(&owner, &Step { open: None, ..step }).await.unwrap();
    let seen = async || Seen::of(&store.record(&claim.scope).await.unwrap().unwrap());
    let take = async || TakeOver { seen: seen().await, owner: OwnerToken::random(), lease: LONG };
    let next = take().await;
    store.take_over(&next).await.unwrap();
    let owner = Ownership { fence: owner.fence.next(), owner: next.owner, ..owner };
    let mut pulse = store.pulse().unwrap();
    let live = vec![(owner.clone(), LONG)];
    let owners = [owner.clone()];
    let beat = move || (pulse.beat(&live).unwrap(), pulse.owns(&owners).unwrap());
    assert_eq!(std::thread::spawn(beat).join().unwrap(), (vec![true], vec![true]));
    store.finish(&owner, &finish(End::Unknown { ask_in: LONG })).await.unwrap();
    let evidence = Evidence { key: name, source: "webhook".into(), state: CallState::Withdrawn };
    assert!(store.learn(&evidence).await.unwrap().is_some());
    store.learned(&claim.scope).await.unwrap();
    assert_eq!(store.due(Duration::ZERO, None, 1000).await.unwrap().len(), 1);
    assert!(!store.oldest().await.unwrap().unknown.is_zero());
    let next = take().await;
    store.take_to_ask(&next).await.unwrap();
    let owner = Ownership { fence: owner.fence.next(), owner: next.owner, ..owner };
    let end = AnsweredEnd::StillUnknown { ask_in: Duration::ZERO, park: false };
    store.answer(&owner, &Answered { closed: Vec::new(), resource: None, end }).await.unwrap();
    store.tend(&seen().await, &Tended::Parked { ask_in: Duration::ZERO }).await.unwrap();
    let audit = AuditEntry {
        scope: Some(claim.scope.clone()),
        action: "resolve".into(),
        actor: "somebody".into(),
        reason: "a test".into(),
    };
    let closed = vec![ClosedCall { name: "charge".into(), state: CallState::Applied(b"receipt".to_vec()) }];
    let at_once = Keep { window: Duration::ZERO, body: Duration::ZERO, metadata: Duration::ZERO };
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; 4096]) };
    let end = End::Completed { response, keep: at_once };
    let resolved =
        store.resolve(&seen().await, &Verdicted::Ended { closed, resource: None, end }, &audit).await.unwrap();
    assert!(matches!(resolved, Guarded::Written { .. }));
    assert_eq!(store.audited(&claim.scope).await.unwrap().len(), 1);
    store.audit(&audit).await.unwrap();
    store.add_contract("create_payment", 1, 0, "text").await.unwrap();
    store.contracts("create_payment", 1).await.unwrap();
    store.settle_setting("namespace", "a").await.unwrap();
    store.sign_of_life().await.unwrap();
    assert!(store.silence().await.unwrap().is_some());
    let order = SweepOrder { limit: 10, purge_tombstones: true };
    let mut swept = Swept::default();
    while swept.purged == 0 {
        swept = store.sweep(order).await.unwrap();
    }
    assert!(store.record(&claim.scope).await.unwrap().is_none());
}

async fn complete(store: &PgStore, name: &str, keep: Keep) {
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; 600]) };
    let end = End::Completed { response, keep };
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
    let database = Cluster::start(&settings).forever().database().await;
    let store = PgStore::open(options(&database)).await.unwrap();
    (store, database)
}

//! Rows that somebody else is writing right now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_cluster::Database;
use idem_core::store::{Claimed, Claiming, Guarded, Owning, Seen, Step, TakeOver};
use idem_core::{Fence, OwnerToken, Ownership, Revision, Status};
use sqlx::{ConnectOptions, PgConnection};

use super::{LONG, cause, inserts, new_claim, options, ownership, temporary};

/// A rival inserts and does not commit: in progress, neither an error nor an owner. When it commits, it is found.
#[tokio::test]
async fn a_claim_that_meets_an_uncommitted_one_is_held() {
    let (_store, database) = temporary().await;
    let store = idem_sqlx::PgStore::connect(options(&database).lock_timeout(Duration::from_millis(50))).await.unwrap();
    let mut rival = rival(&database).await;
    assert!(matches!(store.claim(&new_claim("key-1", LONG)).await, Ok(Claimed::Held)));
    sqlx::raw_sql("COMMIT").execute(&mut rival).await.unwrap();
    let Ok(Claimed::Found(found)) = store.claim(&new_claim("key-1", LONG)).await else { panic!("it is there") };
    assert_eq!(found.record.owner, OwnerToken::from_stored([1; 16]));
}

/// The insert waits for the rival and then finds nothing to insert; the look in the same statement finds nothing
/// either, since it looks at what was there when the statement began. "No row" is neither an error nor an owner.
#[tokio::test]
async fn a_claim_that_waits_for_a_rival_is_settled() {
    for ends in ["COMMIT", "ROLLBACK"] {
        let (store, database) = temporary().await;
        let mut rival = rival(&database).await;
        let waiting = store.clone();
        let claim = new_claim("key-1", LONG);
        let claiming = tokio::spawn(async move { waiting.claim(&claim).await });
        waits(&database).await;
        sqlx::raw_sql(ends).execute(&mut rival).await.unwrap();
        match claiming.await.unwrap() {
            Ok(Claimed::Found(found)) if ends == "COMMIT" => {
                assert_eq!(found.record.owner, OwnerToken::from_stored([1; 16]));
            }
            Ok(Claimed::Inserted { .. }) if ends == "ROLLBACK" => {
                assert!(!inserts(&store, &new_claim("key-1", LONG)).await);
            }
            other => panic!("{ends}: {other:?}"),
        }
    }
}

/// The insert is dated when its row is written, not when it began to wait for a rival that then gave up: a claim never
/// starts with less than its lease.
#[tokio::test]
async fn a_claim_that_waited_for_a_rival_has_its_whole_lease() {
    let (store, database) = temporary().await;
    let mut rival = rival(&database).await;
    let claim = new_claim("key-1", LONG);
    let claiming = tokio::spawn({
        let (store, claim) = (store.clone(), claim.clone());
        async move { store.claim(&claim).await }
    });
    waits(&database).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let released = clock(&mut rival).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut rival).await.unwrap();
    let Ok(Claimed::Inserted { now }) = claiming.await.unwrap() else { panic!("it is a first claim") };
    let record = store.record(&claim.scope).await.unwrap().unwrap();
    assert!(released <= now, "dated {:?} before the rival gave up", released.duration_since(now));
    assert_eq!((record.status, record.created_at), (Status::InProgress { locked_until: now + LONG }, now));
    assert_eq!((record.owner, record.fence, record.revision), (claim.owner, Fence::FIRST, Revision::FIRST));
}

/// A record that its owner's transaction has locked is not taken over, nor waited for; the owner's own write is told to
/// try again; a beat passes it by, and it is not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_record_is_left_alone() {
    let (_store, database) = temporary().await;
    let store = idem_sqlx::PgStore::connect(options(&database).lock_timeout(Duration::from_millis(50))).await.unwrap();
    let claim = new_claim("key-1", Duration::ZERO);
    assert!(inserts(&store, &claim).await);
    let before = store.record(&claim.scope).await.unwrap().unwrap();
    let mut holder = locked(&database).await;
    let take = TakeOver { seen: Seen::of(&before), owner: OwnerToken::random(), lease: LONG };
    let Ok(Guarded::Changed(Some(found))) = store.take_over(&take).await else { panic!("it was taken over") };
    assert_eq!(found.record, before);
    let step = Step { closed: Vec::new(), open: None, resource: None, checkpoint: None, lease: LONG };
    let error = store.step(&ownership(&claim), &step).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_LOCKED"));
    let live = vec![(ownership(&claim), LONG)];
    assert_eq!(beat(&store, live.clone()).await, [true]);
    assert_eq!(store.record(&claim.scope).await.unwrap().unwrap(), before);
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    assert_eq!(beat(&store, live).await, [true]);
    assert!(matches!(store.take_over(&take).await, Ok(Guarded::Changed(Some(_)))));
}

/// A lease is counted from the moment that the row is written, not from the moment that its turn was asked for.
#[tokio::test]
async fn waiting_for_a_lock_eats_no_lease() {
    let (store, database) = temporary().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let owner: Ownership = ownership(&claim);
    let mut holder = locked(&database).await;
    let waiting = store.clone();
    let step = Step { closed: Vec::new(), open: None, resource: None, checkpoint: None, lease: LONG };
    let stepping = tokio::spawn(async move { waiting.step(&owner, &step).await });
    waits(&database).await;
    let released = clock(&mut holder).await;
    // The revision changes under the waiting statement, so that it looks again.
    sqlx::raw_sql("UPDATE idem.idempotency_requests SET revision = revision + 1; COMMIT")
        .execute(&mut holder)
        .await
        .unwrap();
    let Ok(idem_core::store::Fenced::Written { now }) = stepping.await.unwrap() else { panic!("it is the owner's") };
    assert!(now >= released, "dated before the lock");
    let record = store.record(&claim.scope).await.unwrap().unwrap();
    assert_eq!(record.status, Status::InProgress { locked_until: now + LONG });
}

async fn beat(store: &idem_sqlx::PgStore, live: Vec<(Ownership, Duration)>) -> Vec<bool> {
    let mut pulse = store.pulse().unwrap();
    // A thread of its own, which drops the pulse's runtime too.
    tokio::task::spawn_blocking(move || std::thread::spawn(move || pulse.beat(&live)).join().unwrap().unwrap())
        .await
        .unwrap()
}

/// A transaction that has inserted `key-1`.
async fn rival(database: &Database) -> PgConnection {
    let mut rival = database.options().connect().await.unwrap();
    let insert = "BEGIN; INSERT INTO idem.idempotency_requests
        (created_at, updated_at, sweep_at, fence, revision, locked_until, owner_token, attempts, hash_form, hash_version,
        tenant_id, operation_name, idempotency_key, status, request_hash)
        VALUES (now(), now(), now(), 1, 1, now(), '01010101-0101-0101-0101-010101010101', 1, 1, 1,
        'tenant-1', 'create_payment', 'key-1', 'in_progress', sha256('a'))";
    sqlx::raw_sql(insert).execute(&mut rival).await.unwrap();
    rival
}

/// A transaction that has locked every record.
async fn locked(database: &Database) -> PgConnection {
    let mut holder = database.options().connect().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM idem.idempotency_requests FOR UPDATE").execute(&mut holder).await.unwrap();
    holder
}

/// The server's clock.
async fn clock(connection: &mut PgConnection) -> SystemTime {
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let micros: i64 = sqlx::query_scalar(now).fetch_one(connection).await.unwrap();
    UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}

/// Until a statement waits for a lock in this database.
pub(super) async fn waits(database: &Database) {
    let name = database.name();
    let waiting =
        format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock'");
    while database.number(waiting.clone()).await == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

//! What the file is: refused, missing, migrated, damaged, locked, opened again.

use std::path::Path;
use std::time::{Duration, SystemTime};

use idem_core::store::{Claimed, Claiming, Fenced, NewCall, Owning, Step};
use idem_core::{CallClass, DownstreamKey, Fence, OwnerToken, Ownership, ResourceRef, StoreError};
use idem_sqlx::{SqliteOptions, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};

use super::{LONG, cause, inserts, new_claim, temporary};
use crate::stores::damage_is_passed_over;

/// Each connection of a pool would have a database of its own, and an idle one would forget it.
#[tokio::test]
async fn a_database_in_memory_is_refused() {
    for location in ["", ":memory:", "sqlite::memory:", "sqlite://:memory:", "sqlite:a?mode=memory", "file::memory:"] {
        let error = SqliteStore::open(location).await.unwrap_err();
        assert_eq!(error.code(), "DATABASE_IN_MEMORY", "{location}");
        assert!(error.to_string().contains("MemoryStore"), "{error}");
    }
}

#[tokio::test]
async fn a_record_is_found_after_reopening() {
    let (store, directory) = temporary().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let before = store.record(&claim.scope).await.unwrap();
    drop(store);
    let url = format!("sqlite:{}", directory.path().join("idem.db").display());
    let store = SqliteStore::connect(url.as_str()).await.unwrap();
    assert_eq!(store.record(&claim.scope).await.unwrap(), before);
    assert!(!inserts(&store, &claim).await);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let (store, _directory) = temporary().await;
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
    store.clone().close().await;
    store.close().await;
    let error = store.claim(&new_claim("key-2", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_CLOSED"));
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("missing").join("idem.db");
    let error = SqliteStore::open(&file).await.unwrap_err();
    assert_eq!(error.code(), "DATABASE_NOT_OPENABLE");
    assert!(error.to_string().contains("missing"), "{error}");
    // `connect` makes no file where a path was mistyped.
    let file = directory.path().join("idem.db");
    assert_eq!(SqliteStore::connect(&file).await.unwrap_err().code(), "DATABASE_NOT_OPENABLE");
    assert!(!file.exists());
    std::fs::write(&file, "not a database, but long enough to be looked at as one".repeat(100)).unwrap();
    assert_eq!(SqliteStore::open(&file).await.unwrap_err().code(), "DATABASE_DAMAGED");
}

#[tokio::test]
async fn a_file_without_tables_is_not_migrated_by_connecting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    run(&file, "CREATE TABLE payments (id INTEGER PRIMARY KEY)").await;
    assert_eq!(SqliteStore::connect(&file).await.unwrap_err().code(), "SCHEMA_MISSING");
    SqliteStore::migrate(&file).await.unwrap();
    SqliteStore::migrate(&file).await.unwrap();
    assert!(inserts(&SqliteStore::connect(&file).await.unwrap(), &new_claim("key-1", LONG)).await);
}

#[tokio::test]
async fn the_printed_schema_is_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    run(&file, SqliteStore::schema_sql()).await;
    assert!(inserts(&SqliteStore::connect(&file).await.unwrap(), &new_claim("key-1", LONG)).await);
    SqliteStore::open(&file).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_open_a_new_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idem.db");
    let opened = (0..8).map(|_| tokio::spawn(SqliteStore::open(file.clone())));
    for store in futures_util::future::join_all(opened).await {
        store.unwrap().unwrap();
    }
}

/// A file that the release before made, with its records.
#[tokio::test]
async fn a_step_that_is_missing_is_made_and_the_others_are_not_made_again() {
    let (store, _directory) = temporary().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let before = "DROP TABLE idempotency_outbox; DROP TABLE idempotency_inbox;
        DELETE FROM idempotency_migrations WHERE version > 1";
    run(store.file(), before).await;
    assert_eq!(SqliteStore::connect(store.file()).await.unwrap_err().code(), "SCHEMA_TOO_OLD");
    let store = SqliteStore::open(store.file()).await.unwrap();
    assert!(!inserts(&store, &claim).await);
    run(store.file(), "DELETE FROM idempotency_outbox").await;
}

#[tokio::test]
async fn a_schema_of_a_newer_release_is_used_only_where_it_allows_that() {
    let (store, _directory) = temporary().await;
    let newer = |version: i64, oldest: i64| {
        let columns = "idempotency_migrations (version, name, oldest, checksum)";
        format!("INSERT INTO {columns} VALUES ({version}, 'later', {oldest}, X'00')")
    };
    run(store.file(), newer(1001, 1)).await;
    assert!(inserts(&SqliteStore::connect(store.file()).await.unwrap(), &new_claim("key-1", LONG)).await);
    run(store.file(), newer(1002, 1001)).await;
    for opened in [SqliteStore::connect(store.file()).await, SqliteStore::open(store.file()).await] {
        assert_eq!(opened.unwrap_err().code(), "SCHEMA_TOO_NEW");
    }
}

#[tokio::test]
async fn an_edited_migration_is_noticed() {
    let (store, _directory) = temporary().await;
    run(store.file(), "UPDATE idempotency_migrations SET checksum = X'00'").await;
    for opened in [SqliteStore::connect(store.file()).await, SqliteStore::open(store.file()).await] {
        assert_eq!(opened.unwrap_err().code(), "SCHEMA_EDITED");
    }
}

#[tokio::test]
async fn a_damaged_row_is_named_and_never_owned() {
    for (column, value) in [("status", "'done'"), ("request_hash", "X'00'"), ("fence", "0"), ("resource_id", "'x'")] {
        let (store, _directory) = temporary().await;
        let claim = new_claim("key-1", LONG);
        assert!(inserts(&store, &claim).await);
        let damage = format!("UPDATE idempotency_requests SET {column} = {value}");
        run(store.file(), format!("PRAGMA ignore_check_constraints = ON; {damage}")).await;
        match store.claim(&claim).await {
            Err(StoreError::Unreadable(named)) => assert_eq!(named, column),
            other => panic!("{column}: {other:?}"),
        }
    }
}

/// A worker gets to all the others, however small its pages are, and is told which one is damaged.
#[tokio::test]
async fn a_damaged_row_hides_no_other_from_the_worker() {
    let (store, _directory) = temporary().await;
    for key in 1..=5 {
        assert!(inserts(&store, &new_claim(&format!("key-{key}"), Duration::ZERO)).await);
    }
    for key in [1, 3, 5] {
        let damage = format!("UPDATE idempotency_requests SET fence = 0 WHERE idempotency_key = 'key-{key}'");
        run(store.file(), format!("PRAGMA ignore_check_constraints = ON; {damage}")).await;
    }
    damage_is_passed_over(&store).await;
}

#[tokio::test]
async fn a_missing_table_is_unusable() {
    let (store, _directory) = temporary().await;
    run(store.file(), "DROP TABLE idempotency_calls; DROP TABLE idempotency_requests").await;
    let error = store.claim(&new_claim("key-1", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "SCHEMA_MISSING"));
    assert!(!error.is_transient());
}

/// An insert that inserts nothing, and then no record: neither an owner nor something to answer from. It may be tried
/// again, and has a name of its own.
#[tokio::test]
async fn a_record_that_comes_and_goes_is_nobodys() {
    let (store, _directory) = temporary().await;
    let trigger = "CREATE TRIGGER gone BEFORE INSERT ON idempotency_requests BEGIN SELECT RAISE(IGNORE); END";
    run(store.file(), trigger).await;
    let claim = new_claim("key-1", LONG);
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_CONTENDED"));
    assert!(error.is_transient());
    run(store.file(), "DROP TRIGGER gone").await;
    assert!(inserts(&store, &claim).await);
}

/// The application may write to the same file; who waits too long for it is told to try again, and then gets in.
#[tokio::test]
async fn a_lock_held_for_too_long_is_transient() {
    let (store, _directory) = temporary().await;
    let options = SqliteOptions::new(store.file()).busy_timeout(Duration::from_millis(30));
    let store = SqliteStore::connect(options).await.unwrap();
    let mut application = connect(store.file()).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut application).await.unwrap();
    let claim = new_claim("key-1", LONG);
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_LOCKED"));
    sqlx::raw_sql("COMMIT").execute(&mut application).await.unwrap();
    assert!(inserts(&store, &claim).await);
}

/// Each of many writes behind a lock waits for its own time, not for everybody's, and a record that is there is read
/// all the same.
#[tokio::test]
async fn a_locked_file_holds_up_no_replay_and_nobody_twice() {
    let (_, directory) = temporary().await;
    let file = directory.path().join("idem.db");
    let patience = Duration::from_millis(300);
    let store = SqliteStore::open(SqliteOptions::new(&file).busy_timeout(patience)).await.unwrap();
    let there = new_claim("key-1", LONG);
    assert!(inserts(&store, &there).await);
    let mut rival = connect(&file).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut rival).await.unwrap();
    let claims: Vec<_> = (0..40)
        .map(|number| {
            let store = store.clone();
            let claim =
                new_claim(if number % 2 == 0 { "key-1".to_owned() } else { format!("new-{number}") }.as_str(), LONG);
            tokio::spawn(async move { (number, store.claim(&claim).await) })
        })
        .collect();
    // One after the other they would take forty times the patience; the bound is far from both.
    let all = async {
        for claim in claims {
            match claim.await.unwrap() {
                (number, Ok(Claimed::Found(_))) => assert_eq!(number % 2, 0),
                (number, Err(error)) => assert_eq!((number % 2, error.code()), (1, "STORE_UNAVAILABLE")),
                (number, Ok(other)) => panic!("{number} got {other:?} through a lock"),
            }
        }
    };
    tokio::time::timeout(patience * 20, all).await.expect("they waited for each other's time");
}

/// Two processes would own one key: this one in the file that is gone, another in the new one.
#[tokio::test]
async fn a_file_that_was_deleted_or_replaced_is_not_written() {
    let (store, directory) = temporary().await;
    let file = directory.path().join("idem.db");
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
    std::fs::rename(&file, directory.path().join("elsewhere.db")).unwrap();
    let error = store.claim(&new_claim("key-2", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "DATABASE_REPLACED"));
    let _other = SqliteStore::open(&file).await.unwrap();
    let error = store.claim(&new_claim("key-2", LONG)).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "DATABASE_REPLACED"));
}

/// A statement that the database refuses in the middle of a write takes that whole write back, and no other.
#[tokio::test]
async fn a_failed_write_leaves_nothing_of_itself() {
    let (store, _directory) = temporary().await;
    let key = DownstreamKey::from_stored("charge_same".into());
    let step = Step {
        closed: Vec::new(),
        open: Some(NewCall { name: "charge".into(), class: CallClass::Neither, key }),
        resource: None,
        checkpoint: None,
        lease: LONG,
    };
    let mut owners = Vec::new();
    for key in ["key-1", "key-2"] {
        let claim = new_claim(key, LONG);
        assert!(inserts(&store, &claim).await);
        owners.push(Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner });
    }
    assert!(matches!(store.step(&owners[0], &step).await, Ok(Fenced::Written { .. })));
    let before = store.record(&owners[1].scope).await.unwrap();
    // Two records must not share a downstream key: the provider would take their calls for one.
    let error = store.step(&owners[1], &step).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "DATABASE_REFUSED"));
    assert_eq!(store.record(&owners[1].scope).await.unwrap(), before);
    assert!(matches!(store.step(&owners[1], &Step { open: None, ..step }).await, Ok(Fenced::Written { .. })));
}

/// After some errors (a full disk) SQLite rolls back by itself, and a connection that does not know it begins no
/// transaction any more. A trigger stands for them.
#[tokio::test]
async fn a_write_that_sqlite_rolled_back_does_not_stop_the_next() {
    let (store, _directory) = temporary().await;
    let trigger = "CREATE TRIGGER full BEFORE UPDATE ON idempotency_requests WHEN NEW.resource_id = 'full'
        BEGIN SELECT RAISE(ROLLBACK, 'no more'); END";
    run(store.file(), trigger).await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let before = store.record(&claim.scope).await.unwrap();
    let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
    let resource = Some(ResourceRef { kind: "payment".into(), id: "full".into() });
    let step = Step { closed: Vec::new(), open: None, resource, checkpoint: None, lease: LONG };
    assert_eq!(cause(&store.step(&owner, &step).await.unwrap_err()), "DATABASE_REFUSED");
    assert_eq!(store.record(&owner.scope).await.unwrap(), before);
    let step = Step { resource: None, ..step };
    assert!(matches!(store.step(&owner, &step).await, Ok(Fenced::Written { .. })));
}

/// A rival's insert of the same key that is not committed: the claim waits, and then finds it, or is the first.
#[tokio::test]
async fn a_claim_that_waits_for_a_rival_is_settled() {
    for ends in ["COMMIT", "ROLLBACK"] {
        let (store, _directory) = temporary().await;
        let mut rival = connect(store.file()).await;
        let insert = "BEGIN IMMEDIATE; INSERT INTO idempotency_requests
            (tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence,
            owner_token, revision, locked_until, attempts, created_at, updated_at)
            VALUES ('tenant-1', 'create_payment', 'key-1', zeroblob(32), 1, 1, 'in_progress', 1,
            X'01010101010101010101010101010101', 1, 0, 1, 0, 0)";
        sqlx::raw_sql(insert).execute(&mut rival).await.unwrap();
        let (claim, waiting) = (new_claim("key-1", LONG), store.clone());
        let claiming = tokio::spawn({
            let claim = claim.clone();
            async move { waiting.claim(&claim).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!claiming.is_finished(), "it did not wait");
        sqlx::raw_sql(ends).execute(&mut rival).await.unwrap();
        let owner = store.record(&claim.scope).await.unwrap().map(|record| record.owner);
        match claiming.await.unwrap() {
            Ok(Claimed::Found(found)) if ends == "COMMIT" => {
                assert_eq!(found.record.owner, OwnerToken::from_stored([1; 16]));
                assert_eq!(owner, Some(found.record.owner));
            }
            Ok(Claimed::Inserted { .. }) if ends == "ROLLBACK" => {
                assert_eq!(store.record(&claim.scope).await.unwrap().unwrap().owner, claim.owner);
                assert!(!inserts(&store, &new_claim("key-1", LONG)).await);
            }
            other => panic!("{ends}: {other:?}"),
        }
    }
}

/// A lease is counted from the moment that the write lock is held.
#[tokio::test]
async fn waiting_for_the_lock_eats_no_lease() {
    let (store, _directory) = temporary().await;
    let mut application = connect(store.file()).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut application).await.unwrap();
    let claim = new_claim("key-1", LONG);
    let waits = store.clone();
    let claiming = tokio::spawn(async move { waits.claim(&claim).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let released = SystemTime::now();
    sqlx::raw_sql("COMMIT").execute(&mut application).await.unwrap();
    let Claimed::Inserted { now } = claiming.await.unwrap().unwrap() else { panic!("it is a first claim") };
    // The store cuts to milliseconds.
    assert!(released <= now + Duration::from_millis(1), "dated before the lock was free");
}

async fn connect(file: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(file).create_if_missing(true).connect().await.unwrap()
}

pub(super) async fn run(file: &Path, sql: impl Into<String>) {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&mut connect(file).await).await.unwrap();
}

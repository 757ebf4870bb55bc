//! Records written in the application's own transaction.

use std::time::Duration;

use idem_cluster::Database;
use idem_core::store::{Claiming, Fenced, Joins, NewCall, NewClaim, OtherStore, Step, TxStore};
use idem_core::{CallClass, DownstreamKey, Failure, OwnerToken, Ownership, StatusName};
use idem_sqlx::PgStore;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, Postgres, Transaction};

use super::{LONG, cause, completed, finish, inserts, new_claim, options, ownership, temporary};
use crate::stores::joining::{Rows, joining};

joining!(Beside);

/// The application's pool, and idem's tables beside its own.
struct Beside {
    pool: PgPool,
    store: PgStore,
    _database: Database,
}

impl Rows for Beside {
    type Store = PgStore;

    async fn fresh() -> Self {
        let (_store, database) = temporary().await;
        let table = "CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY, name text PRIMARY KEY,
            parent text REFERENCES payments DEFERRABLE INITIALLY DEFERRED)";
        database.run(table).await;
        let pool = PgPool::connect_with(database.options()).await.unwrap();
        // A row that a transaction holds is not waited for.
        let options = options(&database).lock_timeout(Duration::from_millis(100));
        let store = PgStore::connect(options).await.unwrap();
        Self { pool, store, _database: database }
    }

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn begin(&self) -> Transaction<'static, Postgres> {
        self.pool.begin().await.unwrap()
    }

    async fn insert(&self, tx: &mut Transaction<'static, Postgres>, row: &'static str) -> Result<(), Failure> {
        sqlx::query("INSERT INTO payments (name) VALUES ($1)").bind(row).execute(&mut **tx).await?;
        Ok(())
    }

    async fn doom(tx: &mut Transaction<'static, Postgres>) -> bool {
        let orphan = "INSERT INTO payments (name, parent) VALUES ('orphan', 'nobody')";
        sqlx::query(orphan).execute(&mut **tx).await.unwrap();
        true
    }

    async fn rows(&self) -> Vec<String> {
        sqlx::query_scalar("SELECT name FROM payments ORDER BY name").fetch_all(&self.pool).await.unwrap()
    }
}

/// Business row, announcement and completion: together, or nothing of them.
#[tokio::test]
async fn rows_and_record_are_written_together() {
    let (store, database, mut application) = beside().await;
    for (key, commits) in [("committed", true), ("rolled-back", false)] {
        let claim = new_claim(key, LONG);
        assert!(inserts(&store, &claim).await);
        let owner = ownership(&claim);
        let mut tx = application.begin().await.unwrap();
        sqlx::query("INSERT INTO payments VALUES ($1)").bind(key).execute(&mut *tx).await.unwrap();
        assert!(matches!(tx.step(&store, &owner, &announcing(key)).await, Ok(Fenced::Written { .. })));
        assert!(matches!(tx.finish(&store, &owner, &finish(completed("{}"))).await, Ok(Fenced::Written { .. })));
        assert_eq!(status(&store, &claim).await, (StatusName::InProgress, 0));
        let expected = if commits {
            Joins::<PgStore>::commit(tx).await.unwrap();
            (StatusName::Completed, 1)
        } else {
            drop(tx);
            (StatusName::InProgress, 0)
        };
        assert_eq!(status(&store, &claim).await, expected);
        let rows = database.number(format!("SELECT count(*) FROM payments WHERE id = '{key}'")).await;
        assert_eq!(rows, i64::from(commits));
    }
}

/// Who lost the record learns it, writes nothing, and keeps a transaction that works.
#[tokio::test]
async fn a_loser_keeps_a_usable_transaction() {
    let (store, database, mut application) = beside().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let stranger = Ownership { owner: OwnerToken::random(), ..ownership(&claim) };
    let mut tx = application.begin().await.unwrap();
    for _ in 0..2 {
        let refused = tx.finish(&store, &stranger, &finish(completed("{}"))).await;
        assert!(matches!(refused, Ok(Fenced::Refused(Some(_)))), "{refused:?}");
        assert!(matches!(tx.step(&store, &stranger, &announcing("late")).await, Ok(Fenced::Refused(Some(_)))));
    }
    sqlx::query("INSERT INTO payments VALUES ('mine')").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM payments").await, 1);
    assert_eq!(status(&store, &claim).await, (StatusName::InProgress, 0));
}

/// Their snapshot may be older than the claim: that it does not show the record says nothing, and the whole transaction
/// is to be run again, whatever it was to write. One whose snapshot shows it is served.
#[tokio::test]
async fn isolated_transactions_are_told_to_try_again() {
    let (store, _database, mut application) = beside().await;
    let isolated = ["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"];
    for (begin, finishes) in isolated.into_iter().flat_map(|begin| [(begin, true), (begin, false)]) {
        let name = format!("{}-{finishes}", begin.rsplit(' ').next().unwrap());
        let claim = new_claim(&name, LONG);
        let owner = ownership(&claim);
        let write = async |tx: &mut Transaction<'_, Postgres>| {
            if finishes {
                tx.finish(&store, &owner, &finish(completed("{}"))).await
            } else {
                tx.step(&store, &owner, &announcing(&name)).await
            }
        };
        // The snapshot is taken before the claim.
        let mut tx = application.begin_with(begin).await.unwrap();
        sqlx::query("SELECT count(*) FROM payments").execute(&mut *tx).await.unwrap();
        assert!(inserts(&store, &claim).await);
        let error = write(&mut tx).await.unwrap_err();
        assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_SERIALIZATION"));
        assert!(error.is_transient());
        tx.rollback().await.unwrap();

        // The record is written under its snapshot.
        let mut tx = application.begin_with(begin).await.unwrap();
        sqlx::query("SELECT count(*) FROM payments").execute(&mut *tx).await.unwrap();
        store_step(&store, &owner).await;
        let error = write(&mut tx).await.unwrap_err();
        assert_eq!(cause(&error), "DATABASE_SERIALIZATION");
        tx.rollback().await.unwrap();

        let mut tx = application.begin_with(begin).await.unwrap();
        assert!(matches!(write(&mut tx).await, Ok(Fenced::Written { .. })));
        Joins::<PgStore>::commit(tx).await.unwrap();
        let expected = if finishes { (StatusName::Completed, 0) } else { (StatusName::InProgress, 1) };
        assert_eq!(status(&store, &claim).await, expected);
    }
}

/// A transaction of another database, with or without idem's tables in it, holds no record of this one.
#[tokio::test]
async fn a_transaction_beside_other_tables_is_refused() {
    let (store, _database) = temporary().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let (_other_store, with_tables) = temporary().await;
    let without_tables = idem_cluster::Cluster::shared().database().await;
    for other in [&with_tables, &without_tables] {
        let mut other = other.options().connect().await.unwrap();
        let mut tx = other.begin().await.unwrap();
        let error = tx.finish(&store, &ownership(&claim), &finish(completed("{}"))).await.unwrap_err();
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<OtherStore>());
        assert_eq!(source.map(OtherStore::code), Some("TRANSACTION_OF_ANOTHER_STORE"), "{error:?}");
    }
    assert_eq!(status(&store, &claim).await.0, StatusName::InProgress);
}

/// A commit that a crash forgets is none.
#[tokio::test]
async fn a_transaction_that_forgets_is_refused() {
    let (store, _database, mut application) = beside().await;
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let mut tx = application.begin().await.unwrap();
    sqlx::raw_sql("SET LOCAL synchronous_commit = off").execute(&mut *tx).await.unwrap();
    let error = tx.finish(&store, &ownership(&claim), &finish(completed("{}"))).await.unwrap_err();
    assert_eq!(cause(&error), "DATABASE_COMMITS_ASYNCHRONOUSLY");
}

/// The store's own transactions, which nobody leaves open by going away. On one thread nothing else has run when a
/// future was polled once, so every one of these is cut off in flight.
#[tokio::test(flavor = "current_thread")]
async fn a_begin_that_nobody_waits_for_leaves_nothing_open() {
    let (_store, database) = temporary().await;
    database.run("CREATE TABLE payments (id text PRIMARY KEY)").await;
    let store = PgStore::connect(options(&database).connections(1)).await.unwrap();
    for turn in 0..20 {
        assert!(futures_util::FutureExt::now_or_never(store.begin()).is_none());
        let mut tx: Transaction<'static, Postgres> = store.begin().await.unwrap();
        sqlx::query("INSERT INTO payments VALUES ($1)").bind(turn.to_string()).execute(&mut *tx).await.unwrap();
        Joins::<PgStore>::commit(tx).await.unwrap();
        assert_eq!(database.number("SELECT count(*) FROM payments").await, turn + 1);
    }
}

/// A store, and an application's connection beside it, with a table of its own.
async fn beside() -> (PgStore, Database, PgConnection) {
    let (store, database) = temporary().await;
    database.run("CREATE TABLE payments (id text PRIMARY KEY)").await;
    let application = database.options().connect().await.unwrap();
    (store, database, application)
}

fn announcing(name: &str) -> Step {
    let key = DownstreamKey::from_stored(format!("charge_{name}"));
    let open = NewCall { name: "charge".into(), class: CallClass::Neither, key };
    Step { closed: Vec::new(), open: Some(open), resource: None, checkpoint: None, lease: LONG }
}

async fn store_step(store: &PgStore, owner: &Ownership) {
    let step = Step { open: None, ..announcing("none") };
    assert!(matches!(idem_core::store::Owning::step(store, owner, &step).await, Ok(Fenced::Written { .. })));
}

/// How the record stands for everybody, and how many calls it has.
async fn status(store: &PgStore, claim: &NewClaim) -> (StatusName, usize) {
    let record = store.look(&claim.scope).await.unwrap().unwrap().record;
    (record.status.name(), record.calls.len())
}

//! What is sent again, and what is not: transactions that the database gave up, records that come and go, connections
//! that died while nobody used them.

use std::time::Duration;

use idem_core::StoreError;
use idem_core::store::{Claimed, Claiming};
use idem_sqlx::PgStore;

use super::{LONG, cause, inserts, new_claim, options, temporary};
use idem_cluster::Database;

/// A database that gives transactions up (a serializable one, or one that is not PostgreSQL itself) is asked again, a
/// few times, and then its caller is told that he may.
#[tokio::test]
async fn a_claim_that_the_database_gave_up_is_made_again() {
    for (refusals, attempts) in [(0, 1), (2, 3), (5, 6), (6, 6)] {
        let (store, database) = temporary().await;
        let refused =
            format!("IF nextval('attempts') <= {refusals} THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF");
        before_insert(&database, &refused).await;
        let claim = new_claim("key-1", LONG);
        if refusals < 6 {
            assert!(inserts(&store, &claim).await);
            assert_eq!(store.record(&claim.scope).await.unwrap().unwrap().owner, claim.owner);
        } else {
            let error = store.claim(&claim).await.unwrap_err();
            assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_SERIALIZATION"));
            assert!(error.is_transient());
        }
        assert_eq!(database.number("SELECT last_value FROM attempts").await, attempts, "{refusals} refusals");
    }
}

/// "No row" three times over: neither an owner nor a record to answer from. It may be tried again, it has a name of its
/// own, and the connection is as good as it was.
#[tokio::test]
async fn a_record_that_comes_and_goes_is_nobodys() {
    let (_store, database) = temporary().await;
    let store = PgStore::connect(options(&database).connections(1)).await.unwrap();
    assert!(inserts(&store, &new_claim("key-0", LONG)).await);
    let server = "SELECT pid::bigint FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%claimed%'
        AND datname = current_database()";
    let before = database.number(server).await;
    // An insert that inserts nothing, as one does that met a record, which was gone when it was looked for.
    before_insert(&database, "PERFORM nextval('attempts'); RETURN NULL").await;
    let claim = new_claim("key-1", LONG);
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNAVAILABLE", "DATABASE_CONTENDED"));
    assert!(error.is_transient());
    assert_eq!(database.number("SELECT last_value FROM attempts").await, 3);
    assert_eq!(database.number(server).await, before, "the connection was given up");
    database.run("DROP TRIGGER attempts ON idem.idempotency_requests").await;
    assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
}

/// A connection that was idle for longer than the option is tested before it is used; one that was not, is not.
#[tokio::test]
async fn a_connection_that_died_while_idle_reaches_no_claim() {
    for (idle_check, reaches) in [(Duration::ZERO, false), (LONG, true)] {
        let (_store, database) = temporary().await;
        let store = PgStore::connect(options(&database).connections(1).idle_check(idle_check)).await.unwrap();
        for round in 0..5 {
            let claim = new_claim(&format!("key-{round}"), LONG);
            let claimed: Result<Claimed, StoreError> = store.claim(&claim).await;
            match claimed {
                Ok(claimed) => assert!(matches!(claimed, Claimed::Inserted { .. }) && (!reaches || round % 2 == 0)),
                Err(error) => assert!(reaches && round % 2 == 1 && error.is_transient(), "{round}: {error:?}"),
            }
            let cut = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
                WHERE pid <> pg_backend_pid() AND datname = current_database()";
            database.number(cut).await;
        }
    }
}

/// Runs statements before each insert of a record, of all those that say `attempts`.
pub(super) async fn before_insert(database: &Database, statements: &str) {
    let trigger = format!(
        "CREATE SEQUENCE attempts;
        CREATE FUNCTION attempts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statements}; RETURN NEW; END $$;
        CREATE TRIGGER attempts BEFORE INSERT ON idem.idempotency_requests FOR EACH ROW EXECUTE FUNCTION attempts()"
    );
    database.run(trigger).await;
}

//! Through PgBouncer, with the options that are documented for it.

use std::time::Duration;

use idem_cluster::{Database, Supervised, directory, free_port, program, user, write};
use idem_core::store::{Claiming, Fenced, Guarded, Owning, Recovering, Seen, SweepOrder, Sweeping, TakeOver};
use idem_core::{Answer, Engine, Outcome, OwnerToken, Reply, Scope, StatusName, StoreError, Tenant};
use idem_sqlx::{PgOptions, PgStore};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Postgres, Transaction};

use super::races::Pay;
use super::{LONG, at_once, completed, finish, inserts, new_claim, ownership, temporary};

/// Two server connections, twenty clients, five hundred claims, each of which has a rival.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_go_through_a_proxy_in_transaction_mode() {
    let (direct, database) = temporary().await;
    let (proxy, _running) = proxy(&database).await;
    let long = Duration::from_secs(60);
    let options = PgOptions::from(proxy).behind_transaction_proxy().connections(20);
    let options = options.lock_timeout(long).statement_timeout(long).acquire_timeout(long);
    let store = PgStore::open(options).await.unwrap();
    let owned = at_once(20, |client| {
        let store = store.clone();
        async move {
            let mut owned = 0;
            for key in 0..50 {
                // Each key is claimed by two clients.
                let claim = new_claim(&format!("key-{}-{key}", client / 2), LONG);
                if inserts(&store, &claim).await {
                    let finished = store.finish(&ownership(&claim), &finish(completed("{}"))).await;
                    assert!(matches!(finished, Ok(Fenced::Written { .. })), "{finished:?}");
                    owned += 1;
                }
            }
            owned
        }
    });
    assert_eq!(owned.await.into_iter().sum::<i32>(), 500);
    let finished = "SELECT count(*) FROM idem.idempotency_requests WHERE status = 'completed'";
    assert_eq!(database.number(finished).await, 500);

    // The rest of what a store does.
    let claim = new_claim("late", Duration::ZERO);
    assert!(inserts(&store, &claim).await);
    let due = store.due(Duration::ZERO, None, 10).await.unwrap();
    assert_eq!(due.len(), 1);
    let take = TakeOver { seen: Seen::of(&due[0].record), owner: OwnerToken::random(), lease: LONG };
    assert!(matches!(store.take_over(&take).await, Ok(Guarded::Written { .. })));
    let record = store.record(&claim.scope).await.unwrap().unwrap();
    let mut pulse = store.pulse().unwrap();
    let live = vec![(record.ownership(), LONG), (ownership(&claim), LONG)];
    assert_eq!(std::thread::spawn(move || pulse.beat(&live).unwrap()).join().unwrap(), [true, false]);
    store.sweep(SweepOrder { limit: 10, purge_tombstones: true }).await.unwrap();
    let record = direct.record(&claim.scope).await.unwrap().unwrap();
    assert_eq!((record.status.name(), record.attempts), (StatusName::InProgress, 2));
}

/// Its time-outs hold there too: a locked row is not waited for.
#[tokio::test]
async fn a_lock_is_not_waited_for_behind_a_proxy() {
    let (direct, database) = temporary().await;
    let claim = new_claim("key-1", Duration::ZERO);
    assert!(inserts(&direct, &claim).await);
    let (proxy, _running) = proxy(&database).await;
    let options = PgOptions::from(proxy).behind_transaction_proxy().lock_timeout(Duration::from_millis(50));
    let store = PgStore::connect(options).await.unwrap();
    let mut holder = database.options().connect().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM idem.idempotency_requests FOR UPDATE").execute(&mut holder).await.unwrap();
    let record = store.record(&claim.scope).await.unwrap().unwrap();
    let take = TakeOver { seen: Seen::of(&record), owner: OwnerToken::random(), lease: LONG };
    assert!(matches!(store.take_over(&take).await, Ok(Guarded::Changed(Some(_)))));
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    assert!(matches!(store.take_over(&take).await, Ok(Guarded::Written { .. })));
}

/// A server whose transactions are isolated unless they say otherwise: idem's say so, and losing a race stays no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_behind_a_proxy_read_what_is_committed() {
    let (_direct, database) = temporary().await;
    let name = database.name();
    database.run(format!("ALTER DATABASE {name} SET default_transaction_isolation = serializable")).await;
    // No record is written in another isolation.
    database
        .run(
            "CREATE FUNCTION isolated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF current_setting('transaction_isolation') <> 'read committed' THEN
                    RAISE EXCEPTION 'written in %', current_setting('transaction_isolation');
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER isolated BEFORE INSERT OR UPDATE ON idem.idempotency_requests
                FOR EACH ROW EXECUTE FUNCTION isolated()",
        )
        .await;
    let (proxy, _running) = proxy(&database).await;
    let long = Duration::from_secs(60);
    let options = PgOptions::from(proxy).behind_transaction_proxy().connections(16);
    let store = PgStore::connect(options.lock_timeout(long).acquire_timeout(long)).await.unwrap();
    for round in 0..20 {
        let owners = at_once(16, |_| {
            let (store, claim) = (store.clone(), new_claim(&format!("key-{round}"), LONG));
            async move { inserts(&store, &claim).await.then_some(claim.owner) }
        });
        let owners: Vec<_> = owners.await.into_iter().flatten().collect();
        let record = store.record(&new_claim(&format!("key-{round}"), LONG).scope).await.unwrap().unwrap();
        assert_eq!(owners, [record.owner]);
    }
}

/// A transaction of the store's own goes through it too: one server from its begin to its commit.
#[tokio::test]
async fn work_in_a_transaction_goes_through_a_proxy() {
    let (direct, database) = temporary().await;
    database.run("CREATE TABLE payments (id text PRIMARY KEY)").await;
    let (proxy, _running) = proxy(&database).await;
    let store = PgStore::connect(PgOptions::from(proxy).behind_transaction_proxy()).await.unwrap();
    let engine = Engine::builder(store.clone()).build().unwrap();
    for key in ["key-1", "key-2", "key-1"] {
        let (tenant, name) = (Tenant::new("tenant-1").unwrap(), key.parse().unwrap());
        let work = async |mut tx: Transaction<'static, Postgres>, _| {
            sqlx::query("INSERT INTO payments VALUES ($1)").persistent(false).bind(key).execute(&mut *tx).await?;
            Ok((tx, Reply::status(201)))
        };
        let outcome = engine.run_tx(&store, &tenant, &name, &Pay { amount: 1 }, work).await.unwrap();
        assert!(matches!(outcome, Outcome::Done { .. } | Outcome::Second(Answer::Replay { .. })), "{outcome:?}");
        let record = direct.record(&Scope::new(tenant, "create_payment", name)).await.unwrap().unwrap();
        assert_eq!(record.status.name(), StatusName::Completed);
    }
    assert_eq!(database.number("SELECT count(*) FROM payments").await, 2);
}

/// In session mode a client keeps its server, and the option is needed all the same: without it idem sets its time-outs as
/// a connection starts, which the proxy refuses.
#[tokio::test]
async fn claims_go_through_a_proxy_in_session_mode() {
    let (direct, database) = temporary().await;
    let (proxy, _running) = proxy_in("session", &database).await;
    let refused = PgStore::connect(PgOptions::from(proxy.clone()).connections(1)).await.unwrap_err();
    assert_eq!(refused.code(), "DATABASE_NOT_REACHABLE");
    let store = PgStore::connect(PgOptions::from(proxy).behind_transaction_proxy().connections(1)).await.unwrap();
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    assert!(!inserts(&store, &new_claim("key-1", LONG)).await);
    let finished = store.finish(&ownership(&claim), &finish(completed("{}"))).await;
    assert!(matches!(finished, Ok(Fenced::Written { .. })), "{finished:?}");
    let record = direct.record(&claim.scope).await.unwrap().unwrap();
    assert_eq!(record.status.name(), StatusName::Completed);
}

/// Each statement has its bound, behind a proxy too.
#[tokio::test]
async fn a_statement_that_takes_too_long_is_told_of() {
    let (_direct, database) = temporary().await;
    super::again::before_insert(&database, "PERFORM pg_sleep(600)").await;
    let (proxy, _running) = proxy(&database).await;
    let bound = Duration::from_millis(200);
    let direct = PgOptions::from(database.options()).statement_timeout(bound);
    let behind = PgOptions::from(proxy).behind_transaction_proxy().statement_timeout(bound);
    for options in [direct, behind] {
        let store = PgStore::connect(options).await.unwrap();
        let error: StoreError = store.claim(&new_claim("key-1", LONG)).await.unwrap_err();
        assert_eq!((error.is_transient(), super::cause(&error)), (true, "DATABASE_TOO_SLOW"));
    }
    let records = "SELECT count(*) FROM idem.idempotency_requests";
    assert_eq!(database.number(records).await, 0);
}

/// A PgBouncer before the database, of two server connections.
pub(super) async fn proxy(database: &Database) -> (PgConnectOptions, Supervised) {
    proxy_in("transaction", database).await
}

async fn proxy_in(mode: &str, database: &Database) -> (PgConnectOptions, Supervised) {
    let bouncer = program("pgbouncer");
    let server = database.options();
    for _ in 0..3 {
        let user = user();
        let directory = directory("idem-pgbouncer", user);
        let port = free_port();
        let configuration = directory.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={} port={} user={}{}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 2\nmax_client_conn = 100\n",
            server.get_host(),
            server.get_port(),
            server.get_username(),
            std::env::var("PGPASSWORD").map(|password| format!(" password={password}")).unwrap_or_default(),
        );
        write(&configuration, &text);
        let running = Supervised::start(&directory, user, &bouncer, &[configuration.display().to_string()]);
        let proxy = server.clone().host("127.0.0.1").port(port).statement_cache_capacity(0).extra_float_digits(None);
        for _ in 0..200 {
            if proxy.connect().await.is_ok() {
                return (proxy, running);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eprintln!("{}", std::fs::read_to_string(directory.join("log")).unwrap_or_default());
    }
    panic!("PgBouncer did not start");
}

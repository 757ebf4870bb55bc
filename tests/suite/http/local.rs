//! `execute_tx`: a handler whose rows and answer are one transaction, over SQLite and PostgreSQL.

use std::any::Any;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idem_axum::{Failure, Idempotent, MemoryStore, Reply};
use idem_core::store::TxStore;
use idem_core::{Scope, StatusName, Store, Tenant};
use idem_sqlx::{PgOptions, PgStore, SqliteStore};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgPool, SqlitePool};

use crate::http::bench::{Server, TENANT, idem};
use crate::http::command::Pay;
use idem_cluster::Cluster;

struct Service {
    server: Server,
    pool: Pool,
    store: Box<dyn Store>,
    _lives_as_long: Box<dyn Any>,
}

pub(super) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Pool {
    pub(super) async fn count(&self, table: &str) -> i64 {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        match self {
            Self::Sqlite(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
            Self::Postgres(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
        }
    }
}

/// An INSERT, and then what the account asks for.
macro_rules! router {
    ($store:ident, $insert:literal) => {{
        let used = $store.clone();
        let handler = async move |payment: Idempotent<Pay>| {
            payment
                .execute_tx(&used, |payment, mut tx, claim| async move {
                    let id = claim.derived_id("pay");
                    sqlx::query($insert).bind(&id).execute(&mut *tx).await?;
                    match payment.account.as_str() {
                        "refused" => Err(Failure::reply(Reply::status(402))),
                        "broken" => Err("broken".into()),
                        "panics" => panic!("on purpose"),
                        _ => Ok((tx, (StatusCode::CREATED, Json(id)))),
                    }
                })
                .await
        };
        Router::new().route("/pay", post(handler)).with_state(idem($store.clone()).build().unwrap())
    }};
}

async fn sqlite() -> Service {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(directory.path().join("app.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
    sqlx::raw_sql("CREATE TABLE payments (id TEXT PRIMARY KEY) STRICT").execute(&pool).await.unwrap();
    let store = SqliteStore::beside(&pool).await.unwrap();
    let server = Server::start(router!(store, "INSERT INTO payments VALUES (?1)")).await;
    Service { server, pool: Pool::Sqlite(pool), store: Box::new(store), _lives_as_long: Box::new(directory) }
}

async fn postgres() -> Service {
    let database = Cluster::shared().database().await;
    PgStore::migrate(PgOptions::from(database.options())).await.unwrap();
    database.run("CREATE TABLE payments (id text PRIMARY KEY)").await;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    let store = PgStore::beside(&pool).await.unwrap();
    let server = Server::start(router!(store, "INSERT INTO payments VALUES ($1)")).await;
    Service { server, pool: Pool::Postgres(pool), store: Box::new(store), _lives_as_long: Box::new(database) }
}

impl Service {
    async fn pay(&self, key: &str, account: &str) -> crate::http::bench::Answer {
        self.server.post("/pay", key, serde_json::json!({ "account": account, "cents": 1000 })).await
    }

    async fn rows(&self) -> i64 {
        self.pool.count("payments").await
    }

    async fn status(&self, key: &str) -> StatusName {
        let scope = Scope::new(Tenant::new(TENANT).unwrap(), "pay", key.parse().unwrap());
        self.store.look(&scope).await.unwrap().unwrap().record.status.name()
    }
}

/// Each promise on both databases.
macro_rules! on_both {
    ($($promise:ident)+) => {
        $(
            mod $promise {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_sqlite() {
                    super::$promise(super::sqlite().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    super::$promise(super::postgres().await).await;
                }
            }
        )+
    };
}

on_both! {
    rows_and_answer_are_one_transaction
    what_is_refused_or_fails_leaves_no_row
    of_many_at_once_one_runs
}

async fn rows_and_answer_are_one_transaction(service: Service) {
    let first = service.pay("key-1", "acc_1").await;
    let second = service.pay("key-1", "acc_1").await;
    assert_eq!((first.status, second.status, &first.body), (201, 201, &second.body));
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(service.rows().await, 1);
}

async fn what_is_refused_or_fails_leaves_no_row(service: Service) {
    for _ in 0..2 {
        assert_eq!(service.pay("key-1", "refused").await.status, 402);
    }
    assert_eq!(service.status("key-1").await, StatusName::FailedReplayable);
    for (key, account) in [("key-2", "broken"), ("key-3", "panics")] {
        let answer = service.pay(key, account).await;
        assert!(answer.status >= 500, "{account}: {}", answer.status);
        assert_eq!(service.status(key).await, StatusName::FailedRetryable);
    }
    assert_eq!(service.rows().await, 0);
}

/// Sixteen at once: one row, one answer, nobody is told of a database's troubles.
async fn of_many_at_once_one_runs(service: Service) {
    let answers = futures_util::future::join_all((0..16).map(|_| service.pay("key-1", "acc_1"))).await;
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    assert_eq!((service.rows().await, service.pay("key-1", "acc_1").await.status), (1, 201));
}

/// The transaction of a store that the engine does not keep its records in: told before anything is claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_kind_of_store_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("idem.db")).await.unwrap();
    let handler = async move |payment: Idempotent<Pay>| {
        payment.execute_tx(&store, |_, tx: <SqliteStore as TxStore>::Tx, _| async { Ok((tx, "it ran")) }).await
    };
    let memory = MemoryStore::new();
    let router = Router::new().route("/pay", post(handler)).with_state(idem(memory.clone()).build().unwrap());
    let answer = Server::start(router).await.pay("key-1").await;
    // Sending it again would not help: no 503, and nothing that says so.
    assert_eq!((answer.status, answer.code().as_str()), (500, "IDEMPOTENCY_SETUP_WRONG"));
    assert_eq!((answer.header("retry-after"), answer.json().get("next")), (None, None));
    assert!(memory.is_empty());
}

//! `execute_tx` when its client goes, when much runs, and without a key, over SQLite and PostgreSQL.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idem_axum::{Failure, Idem, IdemBuilder, Idempotent, Reply, StillRunning, Tenants};
use idem_cluster::Cluster;
use idem_core::{Scope, StatusName, Store, Tenant};
use idem_sqlx::{PgOptions, PgStore, SqliteStore};
use sqlx::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tokio::sync::Semaphore;

use crate::http::bench::{Effects, Server, TENANT, idem};
use crate::http::command::Pay;
use crate::http::held::watched;
use crate::http::local::Pool;

struct Service {
    server: Server,
    idem: Idem,
    pool: Pool,
    store: Box<dyn Store>,
    /// Requests whose work has its transaction.
    begun: Effects,
    /// Requests whose handler has answered, or was dropped.
    left: Effects,
    /// Lets the work of "held" accounts end.
    go: Arc<Semaphore>,
    _lives_as_long: Box<dyn Any>,
}

#[derive(Clone, Copy)]
enum Database {
    Sqlite,
    Postgres,
}

type Options = fn(IdemBuilder<Tenants>) -> IdemBuilder<Tenants>;

/// An INSERT, and then what the account asks for.
macro_rules! service {
    ($options:ident, $store:ident, $pool:expr, $insert:literal, $lives_as_long:ident) => {{
        let (begun, left, go) = (Effects::default(), Effects::default(), Arc::new(Semaphore::new(0)));
        let (used, beginning, gate) = ($store.clone(), begun.clone(), Arc::clone(&go));
        let handler = async move |payment: Idempotent<Pay>| {
            let (beginning, gate) = (beginning.clone(), Arc::clone(&gate));
            payment
                .execute_tx(&used, |payment, mut tx, claim| async move {
                    let id = claim.derived_id("pay");
                    sqlx::query($insert).bind(&id).execute(&mut *tx).await?;
                    beginning.happen();
                    match payment.account.as_str() {
                        "refused" => Err(Failure::reply(Reply::status(402))),
                        "broken" => Err("broken".into()),
                        "panics" => panic!("on purpose"),
                        "busy" => Ok((tx, (StatusCode::SERVICE_UNAVAILABLE, Json(id)))),
                        "held" => {
                            gate.acquire().await.unwrap().forget();
                            Ok((tx, (StatusCode::CREATED, Json(id))))
                        }
                        _ => Ok((tx, (StatusCode::CREATED, Json(id)))),
                    }
                })
                .await
        };
        let idem = $options(idem($store.clone())).build().unwrap();
        let router = Router::new().route("/pay", post(handler)).with_state(idem.clone());
        let server = Server::start(watched(router, &Effects::default(), &left)).await;
        let (store, _lives_as_long) = (Box::new($store), Box::new($lives_as_long));
        Service { server, idem, pool: $pool, store, begun, left, go, _lives_as_long }
    }};
}

impl Database {
    async fn service(self) -> Service {
        self.service_with(|builder| builder).await
    }

    async fn service_with(self, options: Options) -> Service {
        match self {
            Self::Sqlite => {
                let directory = tempfile::tempdir().unwrap();
                let file =
                    SqliteConnectOptions::new().filename(directory.path().join("app.db")).create_if_missing(true);
                let pool = SqlitePoolOptions::new().connect_with(file).await.unwrap();
                sqlx::raw_sql("CREATE TABLE payments (id TEXT PRIMARY KEY) STRICT").execute(&pool).await.unwrap();
                let store = SqliteStore::beside(&pool).await.unwrap();
                service!(options, store, Pool::Sqlite(pool), "INSERT INTO payments VALUES (?1)", directory)
            }
            Self::Postgres => {
                let database = Cluster::shared().database().await;
                PgStore::migrate(PgOptions::from(database.options())).await.unwrap();
                database.run("CREATE TABLE payments (id text PRIMARY KEY)").await;
                let pool = PgPool::connect_with(database.options()).await.unwrap();
                let store = PgStore::beside(&pool).await.unwrap();
                service!(options, store, Pool::Postgres(pool), "INSERT INTO payments VALUES ($1)", database)
            }
        }
    }

    fn records(self) -> &'static str {
        match self {
            Self::Sqlite => "idempotency_requests",
            Self::Postgres => "idem.idempotency_requests",
        }
    }
}

/// Each promise on both databases.
macro_rules! on_both {
    ($($promise:ident)+) => {
        $(
            mod $promise {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_sqlite() {
                    super::$promise(super::Database::Sqlite).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    super::$promise(super::Database::Postgres).await;
                }
            }
        )+
    };
}

on_both! {
    an_answer_that_is_not_final_rolls_the_rows_back_and_its_retry_runs
    whoever_hangs_up_in_the_middle_of_the_transaction_cancels_nothing
    transactions_count_to_max_running_and_are_drained
    a_request_without_a_key_commits_its_rows_and_leaves_no_record
}

impl Service {
    async fn pay(&self, key: &str, account: &str) -> crate::http::bench::Answer {
        self.server.post("/pay", key, serde_json::json!({ "account": account, "cents": 1000 })).await
    }

    /// Sends a request whose work is held, and hangs up in the middle of its transaction.
    async fn abandon(&self, key: &str) {
        let (begun, left) = (self.begun.count() + 1, self.left.count() + 1);
        let line = format!("idempotency-key: {key}");
        let body = br#"{"account":"held","cents":1000}"#;
        let stream = self.server.open(&[line.as_bytes()], body).await;
        self.begun.reach(begun).await;
        drop(stream);
        self.left.reach(left).await;
    }

    async fn drained(&self) {
        self.idem.drain(Duration::from_secs(30)).await.unwrap();
    }

    async fn rows(&self) -> i64 {
        self.pool.count("payments").await
    }

    async fn status(&self, key: &str) -> StatusName {
        let scope = Scope::new(Tenant::new(TENANT).unwrap(), "pay", key.parse().unwrap());
        self.store.look(&scope).await.unwrap().unwrap().record.status.name()
    }
}

async fn an_answer_that_is_not_final_rolls_the_rows_back_and_its_retry_runs(database: Database) {
    let service = database.service().await;
    for run in 1..=2 {
        let busy = service.pay("key-1", "busy").await;
        assert_eq!((busy.status, busy.replayed(), busy.header("retry-after")), (503, false, Some("1")));
        assert_eq!((service.rows().await, service.begun.count()), (0, run));
        assert_eq!(service.status("key-1").await, StatusName::FailedRetryable);
        // The backoff is a millisecond.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn whoever_hangs_up_in_the_middle_of_the_transaction_cancels_nothing(database: Database) {
    let service = database.service().await;
    service.abandon("key-1").await;
    assert_eq!((service.rows().await, service.status("key-1").await), (0, StatusName::InProgress));
    service.go.add_permits(1);
    service.drained().await;
    assert_eq!((service.rows().await, service.status("key-1").await), (1, StatusName::Completed));
    let next = service.pay("key-1", "held").await;
    assert_eq!((next.status, next.replayed(), service.begun.count()), (201, true, 1));
}

async fn transactions_count_to_max_running_and_are_drained(database: Database) {
    let service = database.service_with(|builder| builder.max_running(1)).await;
    service.abandon("key-1").await;
    let refused = service.pay("key-2", "acc_1").await;
    assert_eq!((refused.status, refused.code()), (503, "IDEMPOTENCY_OVERLOADED".to_owned()));
    let late = service.idem.drain(Duration::from_millis(20)).await;
    assert_eq!(late, Err(StillRunning { count: 1 }));
    service.go.add_permits(1);
    service.drained().await;
    let after = service.pay("key-2", "acc_1").await;
    assert_eq!((after.status, after.replayed(), service.rows().await), (201, false, 2));
}

async fn a_request_without_a_key_commits_its_rows_and_leaves_no_record(database: Database) {
    let service = database.service_with(|builder| builder.operation::<Pay>(|operation| operation.optional_key())).await;
    let send = async |account: &str| {
        let body = serde_json::json!({ "account": account, "cents": 1000 });
        service.server.send(service.server.request("/pay").json(&body)).await.status
    };
    assert_eq!((send("acc_1").await, send("acc_1").await), (201, 201));
    assert_eq!((send("refused").await, send("broken").await, send("busy").await), (402, 500, 503));
    assert_eq!(service.rows().await, 2);
    assert_eq!(service.pool.count(database.records()).await, 0);
}

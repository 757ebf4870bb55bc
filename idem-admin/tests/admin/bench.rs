//! A database with records in it, and the program on it.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use idem_cluster::Cluster;
use idem_core::store::{Evidence, Seen, Tended};
use idem_core::{
    CallClass, CallError, CallState, Claim, DownstreamKey, Engine, Failure, Fate, IdempotencyKey, IdempotentCommand,
    Outcome, Replay, Reply, Rules, Scope, Store, Tenant,
};
use idem_sqlx::{PgOptions, PgStore, SqliteStore};
use serde_json::Value;
use sqlx::ConnectOptions;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
pub(crate) struct Pay {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 1)]
pub(crate) struct Refund {
    cents: u64,
}

/// Its answers hold what must not be stored.
#[derive(IdempotentCommand)]
#[idem(operation = "issue_card", version = 1)]
pub(crate) struct IssueCard {
    cents: u64,
}

/// What a provider says whose answer was lost.
#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
pub(crate) struct Lost;

impl CallError for Lost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

/// Something that is never to be seen where nobody asked for it.
pub(crate) const SECRET: &str = "4929-9123-4567-8910";

pub(crate) struct Bench {
    runtime: Runtime,
    engine: Engine,
    store: Arc<dyn Store>,
    url: String,
    pub(crate) folder: TempDir,
}

pub(crate) fn on_sqlite(test: impl Fn(&Bench)) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("idem.db");
    let store = runtime.block_on(SqliteStore::open(&file)).unwrap();
    let url = format!("sqlite:{}", file.display());
    test(&Bench { engine: engine(store.clone()), store: Arc::new(store), runtime, url, folder });
}

pub(crate) fn on_postgres(test: impl Fn(&Bench)) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let database = runtime.block_on(Cluster::shared().database());
    let store = runtime.block_on(PgStore::open(PgOptions::from(database.options()))).unwrap();
    let url = database.options().to_url_lossy().to_string();
    test(&Bench { engine: engine(store.clone()), store: Arc::new(store), runtime, url, folder });
}

fn engine(store: impl Store + 'static) -> Engine {
    Engine::builder(store)
        .namespace("shop")
        .call::<Pay>("charge", CallClass::Neither)
        .call::<Pay>("mail", CallClass::Neither)
        .operation::<IssueCard>(Rules { replay: Replay::Rebuilt { schema_version: 3 }, ..Rules::default() })
        .call::<IssueCard>("charge", CallClass::Neither)
        .call::<Refund>("credit", CallClass::Dedupes { retention: Duration::from_secs(86_400) })
        .build()
        .unwrap()
}

/// What the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    pub(crate) fn error(&self) -> Value {
        let error: Value = serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {}", self.err));
        error["error"].clone()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program, without any of the caller's own settings.
pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_idem-admin"));
    program.env_remove("IDEM_DATABASE_URL").env_remove("IDEM_ACTOR").env_remove("RUST_LOG");
    program
}

impl Bench {
    /// Runs the program on the database.
    pub(crate) fn admin(&self, arguments: &[&str]) -> Said {
        program().env("IDEM_DATABASE_URL", &self.url).args(arguments).output().unwrap().into()
    }

    /// The same, which must end well.
    pub(crate) fn done(&self, arguments: &[&str]) -> Said {
        let said = self.admin(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}{}", said.out, said.err);
        said
    }

    /// The same, for what a script reads.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.done(&[arguments, &["--json"]].concat()).json()
    }

    pub(crate) fn run<W, F>(&self, tenant: &str, key: &str, work: W) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        let (tenant, key) = (tenant.parse().unwrap(), key.parse().unwrap());
        self.runtime.block_on(self.engine.run(&tenant, &key, &Pay { cents: 5 }, work)).unwrap()
    }

    /// A payment that was charged and answered.
    pub(crate) fn completed(&self, key: &str) {
        let work = async |claim: Claim| {
            let receipt: String = claim.call("charge", async |_| Ok::<_, Lost>(SECRET.to_owned())).await?;
            Ok(Reply::status(201).header("location", format!("/{SECRET}")).body(format!(r#"{{"card":"{receipt}"}}"#)))
        };
        let outcome = self.run("acme", key, work);
        assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    }

    /// A payment whose charge nobody knows about, and whose mail went out.
    pub(crate) fn unknown(&self, tenant: &str, key: &str) -> Scope {
        let work = async |claim: Claim| {
            claim.checkpoint("reserved", 1, &SECRET).await?;
            let _: String = claim.call("mail", async |_| Ok::<_, Lost>(SECRET.to_owned())).await?;
            let _: u32 = claim.call("charge", async |_| Err(Lost)).await?;
            unreachable!("nobody knows")
        };
        let outcome = self.run(tenant, key, work);
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
        scope(tenant, "pay", key)
    }

    /// The same, for a person.
    pub(crate) fn parked(&self, tenant: &str, key: &str) -> Scope {
        self.park(self.unknown(tenant, key))
    }

    /// A payment of whose mail nobody knows either.
    pub(crate) fn parked_with_both_calls_open(&self, tenant: &str, key: &str) -> Scope {
        let work = async |claim: Claim| {
            let _open = claim.open("mail").await?;
            let _: u32 = claim.call("charge", async |_| Err(Lost)).await?;
            unreachable!("nobody knows")
        };
        let outcome = self.run(tenant, key, work);
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
        self.park(scope(tenant, "pay", key))
    }

    /// A card of whose charge nobody knows.
    pub(crate) fn parked_card(&self, key: &str) -> Scope {
        let work = async |claim: Claim| {
            let _: u32 = claim.call("charge", async |_| Err(Lost)).await?;
            unreachable!("nobody knows")
        };
        let outcome = self.card(key, work);
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
        self.park(scope("acme", "issue_card", key))
    }

    pub(crate) fn card<W, F>(&self, key: &str, work: W) -> Outcome
    where
        W: FnOnce(Claim) -> F,
        F: Future<Output = Result<Reply, Failure>>,
    {
        let (tenant, key) = ("acme".parse().unwrap(), key.parse().unwrap());
        self.runtime.block_on(self.engine.run(&tenant, &key, &IssueCard { cents: 5 }, work)).unwrap()
    }

    pub(crate) fn park(&self, scope: Scope) -> Scope {
        self.runtime.block_on(async {
            let record = self.store.look(&scope).await.unwrap().unwrap().record;
            self.store.tend(&Seen::of(&record), &Tended::Parked { ask_in: Duration::from_secs(3600) }).await.unwrap();
        });
        scope
    }

    /// A payment that runs.
    pub(crate) fn in_progress(&self, key: &str) -> Scope {
        let (tenant, key_) = ("acme".parse().unwrap(), key.parse().unwrap());
        self.runtime.block_on(self.engine.begin(&tenant, &key_, &Pay { cents: 5 })).unwrap();
        scope("acme", "pay", key)
    }

    /// A refund that failed, and whose credit may be made again.
    pub(crate) fn retryable(&self, key: &str) -> Scope {
        let (tenant, key_): (Tenant, IdempotencyKey) = ("acme".parse().unwrap(), key.parse().unwrap());
        let work = async |claim: Claim| {
            let _: u32 = claim.call("credit", async |_: DownstreamKey| Err(Lost)).await?;
            unreachable!("the answer was lost")
        };
        let outcome = self.runtime.block_on(self.engine.run(&tenant, &key_, &Refund { cents: 5 }, work)).unwrap();
        assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
        scope("acme", "refund", key)
    }

    /// What a webhook says of the charge of a record.
    pub(crate) fn learn(&self, scope: &Scope) {
        self.runtime.block_on(async {
            let record = self.store.look(scope).await.unwrap().unwrap().record;
            let key = record.calls.iter().find(|call| call.name == "charge").unwrap().key.clone();
            let state = CallState::Applied(format!("{SECRET:?}").into_bytes());
            let known = self.store.learn(&Evidence { key, source: "webhook".into(), state }).await.unwrap();
            assert_eq!(known.as_ref(), Some(scope));
        });
    }

    pub(crate) fn worker_is_alive(&self) {
        self.runtime.block_on(self.store.sign_of_life()).unwrap();
    }

    /// The states of the open records, by their keys.
    pub(crate) fn listed(&self, arguments: &[&str]) -> Vec<(String, String)> {
        let listed = self.json(&[&["list"], arguments].concat());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let records = listed["records"].as_array().unwrap();
        records.iter().map(|record| (text(&record["key"]), text(&record["state"]))).collect()
    }
}

pub(crate) fn scope(tenant: &str, operation: &str, key: &str) -> Scope {
    Scope::new(tenant.parse().unwrap(), operation, key.parse().unwrap())
}

/// A file for `--body-file`.
pub(crate) fn file(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let file = bench.folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    file
}

//! A node whose clock is two minutes ahead, beside one whose clock is right: the database's clock decides for both.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_core::{
    Answer, Begin, Clock, Engine, IdempotencyKey, IdempotentCommand, Outcome, Reply, Rules, Store, Tenant,
};
use idem_sqlx::{PgStore, SqliteStore};

use idem_cluster::Cluster;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

struct Ahead;

#[async_trait]
impl Clock for Ahead {
    fn now(&self) -> SystemTime {
        SystemTime::now() + AHEAD
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn fraction(&self) -> f64 {
        0.5
    }
}

async fn begin(engine: &Engine, key: &str) -> Begin {
    let key: IdempotencyKey = key.parse().unwrap();
    engine.begin(&Tenant::new("acme").unwrap(), &key, &Pay { cents: 5 }).await.unwrap()
}

/// Each of the two claims a key, and the other meets it; then each ends its own, and the other replays it.
async fn meet(store: impl Store + Clone + 'static) {
    // By the clock that is ahead, a lease is over as soon as it begins.
    let rules = Rules { lease: AHEAD - Duration::from_secs(20), ..Rules::default() };
    let right = Engine::builder(store.clone()).rules(rules.clone()).build().unwrap();
    let ahead = Engine::builder(store).rules(rules).clock(Arc::new(Ahead)).build().unwrap();
    for (key, owner, other) in [("k-1", &right, &ahead), ("k-2", &ahead, &right)] {
        let Begin::Run(claim) = begin(owner, key).await else { panic!("{key} was not free") };
        let met = begin(other, key).await;
        assert!(matches!(met, Begin::Decided(Answer::InProgress { .. })), "{key}: {met:?}");
        let outcome = owner.conduct(claim, |_| async { Ok(Reply::status(201)) }, |_| ()).await;
        let Outcome::Done { expires_at: ends, .. } = outcome else { panic!("{key}: {outcome:?}") };
        let window = Rules::default().window;
        assert!(ends < SystemTime::now() + window + AHEAD / 2, "{key}: the window began in the future");
        let met = begin(other, key).await;
        let Begin::Decided(Answer::Replay { expires_at, .. }) = met else { panic!("{key}: {met:?}") };
        assert_eq!(expires_at, ends, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_ahead_takes_nothing_over_and_moves_no_window_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    meet(SqliteStore::open(directory.path().join("idem.db")).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_ahead_takes_nothing_over_and_moves_no_window_on_postgresql() {
    let database = Cluster::shared().database().await;
    let store = PgStore::open(database.options()).await.unwrap();
    meet(store.clone()).await;
    store.close().await;
}

const AHEAD: Duration = Duration::from_secs(120);

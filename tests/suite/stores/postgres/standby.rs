//! A standby, and what a failover to it keeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_cluster::{Cluster, Database};
use idem_core::store::{Claimed, Claiming};
use idem_core::{
    Answer, CallClass, CallError, DownstreamKey, Engine, Fate, IdempotentCommand, Outcome, Reply, Scope, StatusName,
    Tenant,
};
use idem_sqlx::{PgOptions, PgStore};

use super::{DAY, options};

#[derive(IdempotentCommand)]
#[idem(operation = "create_payment", version = 1)]
struct Pay {
    amount: u64,
}

/// Nothing is claimed on a standby. After its promotion what had reached it is there, and what had not is lost: the same
/// request runs again, and then only its downstream key keeps the effect from happening twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_keeps_what_was_replicated_and_the_downstream_key_protects_the_rest() {
    let primary = Cluster::start(&["fsync=off"]).forever();
    let database = primary.database().await;
    let store = PgStore::open(options(&database)).await.unwrap();
    let standby = primary.standby(&["fsync=off"]);
    let provider = Provider::default();

    assert!(matches!(pay(&store, &provider, "kept").await, Outcome::Done { .. }));
    let kept = store.record(&scope("kept")).await.unwrap().unwrap();
    reaches(&database, &standby).await;

    let there = PgOptions::from(standby.options().database(database.name()));
    for opened in [PgStore::open(there.clone()).await, PgStore::connect(there.clone()).await] {
        assert_eq!(opened.unwrap_err().code(), "DATABASE_IS_REPLICA");
    }

    // The network between them goes; the primary still answers.
    standby.run("ALTER SYSTEM SET primary_conninfo = ''").await;
    standby.run("SELECT pg_reload_conf()").await;
    while standby.number("SELECT count(*) FROM pg_stat_wal_receiver").await > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(matches!(pay(&store, &provider, "lost").await, Outcome::Done { .. }));
    assert_eq!(provider.asked("lost"), 1);
    let lost = store.record(&scope("lost")).await.unwrap().unwrap();

    standby.run("SELECT pg_promote()").await;
    let store = PgStore::open(there).await.unwrap();
    assert_eq!(store.record(&scope("kept")).await.unwrap().unwrap(), kept);
    assert!(matches!(pay(&store, &provider, "kept").await, Outcome::Second(Answer::Replay { .. })));
    assert!(store.record(&scope("lost")).await.unwrap().is_none());

    assert!(matches!(pay(&store, &provider, "lost").await, Outcome::Done { .. }));
    let again = store.record(&scope("lost")).await.unwrap().unwrap();
    assert_eq!((again.calls[0].key.as_str(), again.attempts), (lost.calls[0].key.as_str(), 1));
    assert_ne!(again.owner, lost.owner);
    assert_eq!((provider.asked("kept"), provider.asked("lost"), provider.effects()), (1, 2, 2));
}

/// With a synchronous standby an answer is given only for what has reached it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_synchronous_standby_loses_nothing_that_was_answered() {
    let primary = Cluster::start(&["fsync=off"]).forever();
    let database = primary.database().await;
    let store = PgStore::open(options(&database)).await.unwrap();
    let standby = primary.standby(&["fsync=off"]);
    primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    primary.run("SELECT pg_reload_conf()").await;
    while primary.number("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let claim = super::new_claim("key-1", DAY);
    assert!(super::inserts(&store, &claim).await);
    // No waiting: an acknowledged claim is there already.
    standby.run("SELECT pg_promote()").await;
    let there = PgStore::open(PgOptions::from(standby.options().database(database.name()))).await.unwrap();
    match there.claim(&super::new_claim("key-1", DAY)).await.unwrap() {
        Claimed::Found(found) => {
            assert_eq!((found.record.owner, found.record.status.name()), (claim.owner, StatusName::InProgress));
        }
        other => panic!("{other:?}"),
    }
    // The old primary waits for a standby that it has no more, also at the end of this test.
    primary.run("ALTER SYSTEM SET synchronous_standby_names = ''").await;
    primary.run("SELECT pg_reload_conf()").await;
}

/// A provider that dedupes by our key.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<HashMap<String, usize>>>);

#[derive(Debug, thiserror::Error)]
#[error("the provider is never away")]
struct Away;

impl CallError for Away {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

impl Provider {
    fn charge(&self, reference: &str, key: &DownstreamKey) -> Result<String, Away> {
        *self.0.lock().unwrap().entry(format!("{reference} {}", key.as_str())).or_default() += 1;
        Ok(format!("receipt of {}", key.as_str()))
    }

    /// How often it was asked for that payment.
    fn asked(&self, reference: &str) -> usize {
        let asked = self.0.lock().unwrap();
        asked.iter().filter(|(effect, _)| effect.starts_with(&format!("{reference} "))).map(|(_, times)| times).sum()
    }

    /// How many different effects it had.
    fn effects(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A node: it knows the store and the provider, and nothing that another one knew.
async fn pay(store: &PgStore, provider: &Provider, key: &'static str) -> Outcome {
    let engine = Engine::builder(store.clone()).call::<Pay>("charge", CallClass::Dedupes { retention: DAY });
    let (engine, provider) = (engine.build().unwrap(), provider.clone());
    let scope = scope(key);
    engine
        .run(scope.tenant(), scope.key(), &Pay { amount: 5 }, |claim| async move {
            let receipt: String = claim.call("charge", |at| async move { provider.charge(key, &at) }).await?;
            Ok(Reply::status(201).body(receipt))
        })
        .await
        .unwrap()
}

fn scope(key: &str) -> Scope {
    Scope::new(Tenant::new("tenant-1").unwrap(), "create_payment", key.parse().unwrap())
}

/// Waits until all that was committed so far is on the standby.
async fn reaches(database: &Database, standby: &Cluster) {
    let written = database.text("SELECT pg_current_wal_lsn()::text").await;
    let missing = format!("SELECT greatest('{written}'::pg_lsn - pg_last_wal_replay_lsn(), 0)::bigint");
    while standby.number(missing.clone()).await > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

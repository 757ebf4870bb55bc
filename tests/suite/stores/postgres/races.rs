//! Never two owners.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;
use idem_cluster::Database;
use idem_core::store::{Claiming, End, Fenced, Guarded, NewCall, Owning, Seen, Step, TakeOver};
use idem_core::{
    Answer, Begin, CallClass, DownstreamKey, Engine, Fence, IdempotentCommand, Outcome, OwnerToken, Reply, Scope,
    StatusName, Tenant,
};
use idem_sqlx::PgStore;
use sqlx::ConnectOptions;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::oneshot;

use super::locks::waits;
use super::{KEEP, LONG, at_once, completed, finish, inserts, new_claim, options, ownership, temporary};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fresh_keys_have_one_owner_each() {
    let (store, other, _database) = two_stores().await;
    for key in 0..KEYS {
        let key = format!("key-{key}");
        let owners = at_once(RACERS, |racer| {
            let store = if racer % 2 == 0 { store.clone() } else { other.clone() };
            let claim = new_claim(&key, LONG);
            async move { inserts(&store, &claim).await.then_some(claim.owner) }
        });
        let owners: Vec<_> = owners.await.into_iter().flatten().collect();
        let record = store.record(&new_claim(&key, LONG).scope).await.unwrap().unwrap();
        assert_eq!((owners.as_slice(), record.fence), ([record.owner].as_slice(), Fence::FIRST));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leases_that_are_over_have_one_heir_each() {
    let (store, other, _database) = two_stores().await;
    for key in 0..KEYS {
        let claim = new_claim(&format!("key-{key}"), Duration::ZERO);
        assert!(inserts(&store, &claim).await);
        one_takes_over([&store, &other], claim.scope).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failed_records_are_retried_by_one_each() {
    let (store, other, _database) = two_stores().await;
    for key in 0..KEYS {
        let claim = new_claim(&format!("key-{key}"), LONG);
        assert!(inserts(&store, &claim).await);
        let end = End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP };
        store.finish(&ownership(&claim), &finish(end)).await.unwrap();
        one_takes_over([&store, &other], claim.scope).await;
    }
}

/// B decides, A announces, B takes over, from two stores at once and under load: whoever is first, the call is not made
/// twice. Each of them is first at times.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_announcement_races_a_take_over() {
    let (store, other, _database) = two_stores().await;
    let busy = (0..4).map(|stranger| {
        let store = if stranger % 2 == 0 { store.clone() } else { other.clone() };
        tokio::spawn(async move {
            for key in 0.. {
                let claim = new_claim(&format!("stranger-{stranger}-{key}"), LONG);
                assert!(inserts(&store, &claim).await);
                store.finish(&ownership(&claim), &finish(completed("{}"))).await.unwrap();
            }
        })
    });
    let busy: Vec<_> = busy.collect();
    let mut announced = 0;
    for round in 0..KEYS {
        let claim = new_claim(&format!("key-{round}"), Duration::ZERO);
        assert!(inserts(&store, &claim).await);
        let seen = Seen::of(&store.record(&claim.scope).await.unwrap().unwrap());
        let key = DownstreamKey::from_stored(format!("charge_{round}"));
        let open = Some(NewCall { name: "charge".into(), class: CallClass::Neither, key });
        let step = Step { closed: Vec::new(), open, resource: None, checkpoint: None, lease: LONG };
        let won = at_once(2, |racer| {
            let (store, other, owner, seen) = (store.clone(), other.clone(), ownership(&claim), seen.clone());
            let step = step.clone();
            async move {
                // One has a start on the other, now this one, now that, from nothing to much.
                if racer == round % 2 {
                    tokio::time::sleep(Duration::from_micros(round as u64 * 20)).await;
                }
                if racer == 0 {
                    matches!(store.step(&owner, &step).await.unwrap(), Fenced::Written { .. })
                } else {
                    let take = TakeOver { seen, owner: OwnerToken::random(), lease: LONG };
                    matches!(other.take_over(&take).await.unwrap(), Guarded::Written { .. })
                }
            }
        })
        .await;
        let record = store.record(&claim.scope).await.unwrap().unwrap();
        assert_ne!(won[0], won[1]);
        assert_eq!((record.has_open_call(), record.owner == claim.owner), (won[0], won[0]));
        announced += usize::from(won[0]);
    }
    for stranger in busy {
        assert!(!stranger.is_finished(), "there was no load");
        stranger.abort();
    }
    assert!((1..KEYS).contains(&announced), "{announced} of {KEYS} announcements were first");
}

/// Whoever drops a future half-way leaves every connection fit for the next, keeps what was acknowledged, and learns by
/// the same claim whether it was made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_callers_leave_nothing_half_done() {
    let (store, other, _database) = two_stores().await;
    for turn in 0..200_u64 {
        let claim = new_claim(&format!("key-{turn}"), LONG);
        let work = async {
            assert!(inserts(&store, &claim).await);
            store.finish(&ownership(&claim), &finish(End::Unknown { ask_in: LONG })).await.unwrap();
        };
        let cut = tokio::time::timeout(Duration::from_micros(turn * 20), work).await.is_err();
        // A stranger is acknowledged only for what another connection sees: no transaction was left open before it.
        let stranger = new_claim(&format!("stranger-{turn}"), LONG);
        assert!(inserts(&store, &stranger).await);
        assert!(other.record(&stranger.scope).await.unwrap().is_some());
        // The same claim again: inserted now, or its own name tells that it was.
        inserts(&other, &claim).await;
        let record = other.record(&claim.scope).await.unwrap().unwrap();
        assert_eq!((record.owner, record.fence), (claim.owner, Fence::FIRST));
        assert!(cut || record.status.name() == StatusName::Unknown);
    }
}

/// A `begin` that is cancelled in flight hands its connection on inside a transaction; the next insert on it reports its
/// row and is never committed. Claims made beside that very pool are.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_poisoned_pool_does_not_reach_a_claim() {
    let (_store, database) = temporary().await;
    database.run("CREATE TABLE payments (id bigint PRIMARY KEY)").await;
    let pool = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect_with(database.options()).await.unwrap();
    let store = PgStore::beside(&pool).await.unwrap();
    let mut poisoned = 0;
    for turn in 0..40_i64 {
        // One poll sends BEGIN; mostly nobody waits for what the server says.
        drop(pool.begin().now_or_never());
        let inserted = sqlx::query("INSERT INTO payments VALUES ($1)").bind(turn).execute(&pool).await.unwrap();
        assert_eq!(inserted.rows_affected(), 1);
        let there = database.number(format!("SELECT count(*) FROM payments WHERE id = {turn}")).await;
        poisoned += i64::from(there == 0);

        let claim = new_claim(&format!("key-{turn}"), LONG);
        assert!(inserts(&store, &claim).await);
        let there = "SELECT count(*) FROM idem.idempotency_requests WHERE idempotency_key = ";
        assert_eq!(database.number(format!("{there}'key-{turn}'")).await, 1);
    }
    assert!(poisoned > 0, "sqlx does not do that any more: the tasks may go");
}

#[derive(IdempotentCommand)]
#[idem(operation = "create_payment", version = 1)]
pub(super) struct Pay {
    pub(super) amount: u64,
}

/// Losing the race is no error, also where two connections serve 64 requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_requests_one_runs() {
    let (_store, database) = temporary().await;
    let store = PgStore::connect(options(&database).connections(2)).await.unwrap();
    let engine = Engine::builder(store).build().unwrap();
    let effects = Arc::new(AtomicUsize::new(0));
    let outcomes = at_once(64, |_| {
        let (engine, effects) = (engine.clone(), Arc::clone(&effects));
        async move { pay(&engine, &effects, Duration::from_millis(300)).await }
    })
    .await;
    let done = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done { .. })).count();
    let second = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Second(Answer::InProgress { .. } | Answer::Replay { .. })));
    assert_eq!((done, second.count(), effects.load(Ordering::SeqCst)), (1, 63, 1));
}

/// Handlers that hold all connections of the application's pool do not keep their own outcomes from being stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pool_that_handlers_hold_starves_nobody() {
    let (_store, database) = temporary().await;
    let pool = PgPoolOptions::new().max_connections(2).connect_with(database.options()).await.unwrap();
    let store = PgStore::beside(&pool).await.unwrap();
    let finished = at_once(20, |request| {
        let (pool, store) = (pool.clone(), store.clone());
        async move {
            let claim = new_claim(&format!("key-{request}"), LONG);
            let mut business = pool.begin().await.unwrap();
            assert!(inserts(&store, &claim).await);
            sqlx::query("SELECT pg_sleep(0.02)").execute(&mut *business).await.unwrap();
            let finished = store.finish(&ownership(&claim), &finish(completed("{}"))).await.unwrap();
            business.commit().await.unwrap();
            matches!(finished, Fenced::Written { .. })
        }
    });
    assert!(finished.await.into_iter().all(|finished| finished));
}

/// An outcome that finds no connection: its client is told to wait, and not that it is done; it is tried again until it
/// is stored; and who asks meanwhile runs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_outcome_that_finds_no_connection_is_stored_later() {
    let (direct, database) = temporary().await;
    let moment = Duration::from_millis(50);
    let store = PgStore::connect(options(&database).connections(1).acquire_timeout(moment)).await.unwrap();
    let rules = idem_core::Rules { patience: moment, ..Default::default() };
    let engine = Engine::builder(store.clone()).rules(rules).build().unwrap();
    let effects = Arc::new(AtomicUsize::new(0));
    let (tenant, key) = (Tenant::new("tenant-1").unwrap(), "key-1".parse().unwrap());
    let Begin::Run(claim) = engine.begin(&tenant, &key, &Pay { amount: 1 }).await.unwrap() else { panic!("it ran") };
    // The only connection waits for a lock while the work ends.
    let mut holder = database.options().connect().await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE idem.idempotency_requests IN EXCLUSIVE MODE").execute(&mut holder).await.unwrap();
    let work = {
        let (store, database, effects) = (store.clone(), &database, Arc::clone(&effects));
        move |_| async move {
            effects.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move { store.claim(&new_claim("stranger", LONG)).await });
            waits(database).await;
            Ok(Reply::status(201))
        }
    };
    let (tell, told) = oneshot::channel();
    let ending = engine.conduct(claim, work, |early| drop(tell.send(early)));
    let releasing = async {
        let early = told.await.expect("the client was told nothing");
        assert!(matches!(early, Outcome::NotStored { .. }), "{early:?}");
        let second = engine.begin(&tenant, &key, &Pay { amount: 1 }).await;
        assert!(second.is_err_and(|error| error.is_transient()));
        let there = direct.record(&new_claim("key-1", LONG).scope).await.unwrap().unwrap();
        assert_eq!(there.status.name(), StatusName::InProgress);
        sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    };
    let (ended, ()) = join(ending, releasing).await;
    assert!(matches!(ended, Outcome::Done { .. }), "{ended:?}");
    let second = pay(&engine, &effects, Duration::ZERO).await;
    assert!(matches!(second, Outcome::Second(Answer::Replay { .. })), "{second:?}");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

async fn pay(engine: &Engine, effects: &Arc<AtomicUsize>, takes: Duration) -> Outcome {
    let (tenant, key) = (Tenant::new("tenant-1").unwrap(), "key-1".parse().unwrap());
    let effects = Arc::clone(effects);
    let work = move |_| async move {
        effects.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(takes).await;
        Ok(Reply::status(201))
    };
    engine.run(&tenant, &key, &Pay { amount: 1 }, work).await.unwrap()
}

async fn two_stores() -> (PgStore, PgStore, Database) {
    let (store, database) = temporary().await;
    let other = PgStore::connect(options(&database)).await.unwrap();
    (store, other, database)
}

async fn one_takes_over(stores: [&PgStore; 2], scope: Scope) {
    let seen = Seen::of(&stores[0].record(&scope).await.unwrap().unwrap());
    let heirs = at_once(RACERS, |racer| {
        let store = stores[racer % 2].clone();
        let take = TakeOver { seen: seen.clone(), owner: OwnerToken::random(), lease: LONG };
        async move {
            match store.take_over(&take).await.unwrap() {
                Guarded::Written { .. } => Some(take.owner),
                Guarded::Changed(found) => found.map(|_| None).unwrap(),
            }
        }
    });
    let heirs: Vec<_> = heirs.await.into_iter().flatten().collect();
    let record = stores[1].record(&scope).await.unwrap().unwrap();
    assert_eq!((heirs.as_slice(), record.fence, record.attempts), ([record.owner].as_slice(), seen.fence.next(), 2));
}

const KEYS: usize = 300;
const RACERS: usize = 16;

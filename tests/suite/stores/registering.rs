//! Deploys: what a store says to the contract of a node that starts.

use idem_core::store::Claiming;
use idem_core::{Engine, IdempotentCommand, OtherNamespace, RegisterError, Reply, Scope, StoreError, Tenant};

use crate::support::faulty::FaultyStore;

/// Runs every deploy on one kind of store.
macro_rules! registering {
    ($open:expr) => {
        crate::stores::registering::registering!(@each $open;
            a_breaking_contract_is_refused_with_the_explanation
            additions_are_accepted_in_either_direction
            two_additions_that_know_nothing_of_each_other_are_refused
            a_contract_that_was_seen_before_starts_again
            an_override_leaves_a_row_and_is_the_measure_from_then_on
            kept_versions_are_registered_too
            a_contract_that_cannot_be_read_is_refused
            sixteen_nodes_register_at_once
            of_rivals_that_break_with_each_other_one_starts
            another_namespace_is_refused_at_the_start
            another_namespace_claims_nothing
            of_rivals_with_two_namespaces_one_starts
        );
    };
    (@each $open:expr; $($deploy:ident)*) => {$(
        #[test]
        fn $deploy() {
            crate::stores::block_on(async {
                let (store, _guard) = $open.await;
                crate::stores::registering::$deploy(crate::support::faulty::FaultyStore::over(store)).await;
            });
        }
    )*};
}
pub(super) use registering;

macro_rules! commands {
    ($($name:ident $version:literal { $($(#[$field:meta])* $member:ident: $ty:ty),* })*) => {$(
        #[derive(IdempotentCommand)]
        #[idem(operation = "pay", version = $version)]
        struct $name { $($(#[$field])* $member: $ty),* }
    )*};
}

commands! {
    Plain 1 { payee: String }
    Noted 1 { payee: String, note: Option<String> }
    NotedReordered 1 { note: Option<Box<str>>, payee: String }
    Dated 1 { payee: String, date: Option<u64> }
    Upper 1 { #[idem(uppercase)] payee: String }
    UpperNoted 1 { #[idem(uppercase)] payee: String, note: Option<String> }
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, oldest = 1)]
struct Second {
    payee: String,
    #[idem(until = 1)]
    note: Option<String>,
}

fn engine(store: &FaultyStore) -> Engine {
    Engine::builder(store.clone()).build().unwrap()
}

async fn texts(store: &FaultyStore, version: u32) -> Vec<String> {
    use idem_core::store::Keeping;
    store.contracts("pay", version).await.unwrap()
}

async fn refused<C: IdempotentCommand>(engine: &Engine) -> RegisterError {
    engine.register::<C>().await.expect_err("it breaks")
}

pub(super) async fn a_breaking_contract_is_refused_with_the_explanation(store: FaultyStore) {
    let engine = engine(&store);
    engine.register::<Plain>().await.unwrap();
    let error = refused::<Upper>(&engine).await;
    assert_eq!(error.code(), "REGISTER_BREAKING");
    assert_eq!(
        error.to_string(),
        "the contract of `pay` version 1 breaks with the one that wrote the store's records\n\
         breaking: payee was `text`, is `text(uppercase)`\n  \
         the same value is written otherwise, or two that were two are one now [normalisation_changed]\n\
         the way out: `version = 2`, with the rules of version 1 kept (`previous = …`)"
    );
    assert_eq!(texts(&store, 1).await, [Plain::contract().to_string()], "a refused one leaves nothing");
}

pub(super) async fn additions_are_accepted_in_either_direction(store: FaultyStore) {
    let engine = engine(&store);
    engine.register::<Noted>().await.unwrap();
    engine.register::<Plain>().await.unwrap();
    engine.register::<NotedReordered>().await.unwrap();
    assert_eq!(texts(&store, 1).await.len(), 2, "one contract is kept once");
}

/// Each only adds to the first, but what one takes for a member the other overlooks.
pub(super) async fn two_additions_that_know_nothing_of_each_other_are_refused(store: FaultyStore) {
    let engine = engine(&store);
    engine.register::<Plain>().await.unwrap();
    engine.register::<Noted>().await.unwrap();
    let error = refused::<Dated>(&engine).await;
    assert!(error.to_string().contains("breaking: note was `note: optional text`, is gone"), "{error}");
}

pub(super) async fn a_contract_that_was_seen_before_starts_again(store: FaultyStore) {
    let engine = engine(&store);
    engine.register::<Plain>().await.unwrap();
    engine.register_anyway::<Upper>("ada", "no records yet").await.unwrap();
    engine.register::<Plain>().await.unwrap();
    engine.register::<Upper>().await.unwrap();
}

pub(super) async fn an_override_leaves_a_row_and_is_the_measure_from_then_on(store: FaultyStore) {
    let engine = engine(&store);
    engine.register_anyway::<Plain>("ada", "the first").await.unwrap();
    assert_eq!(store.audits(), [], "nothing was overridden");
    engine.register_anyway::<Upper>("ada", "never went live").await.unwrap();
    engine.register_anyway::<Upper>("ada", "never went live").await.unwrap();
    let [row] = &store.audits()[..] else { panic!("{:?}", store.audits()) };
    assert_eq!((row.action.as_str(), row.actor.as_str()), ("override contract pay.v1", "ada"));
    assert!(row.reason.starts_with("never went live\n") && row.reason.contains("`text(uppercase)`"), "{}", row.reason);
    engine.register::<UpperNoted>().await.unwrap();
    refused::<Noted>(&engine).await;
}

pub(super) async fn kept_versions_are_registered_too(store: FaultyStore) {
    let engine = engine(&store);
    engine.register::<Second>().await.unwrap();
    assert_eq!(texts(&store, 1).await, [Noted::contract().to_string()]);
    assert_eq!(texts(&store, 2).await, [Second::contract().to_string()]);
    refused::<Upper>(&engine).await;
}

pub(super) async fn a_contract_that_cannot_be_read_is_refused(store: FaultyStore) {
    use idem_core::store::Keeping;
    assert!(store.add_contract("pay", 1, 0, "idem contract 2\n").await.unwrap());
    let engine = engine(&store);
    let error = refused::<Plain>(&engine).await;
    assert_eq!(error.code(), "REGISTER_UNREADABLE");
    engine.register_anyway::<Plain>("ada", "a newer build wrote it").await.unwrap();
    engine.register::<Plain>().await.unwrap();
}

pub(super) async fn sixteen_nodes_register_at_once(store: FaultyStore) {
    let nodes = (0..16).map(|number| {
        let engine = engine(&store);
        tokio::spawn(async move {
            match number % 2 {
                0 => engine.register::<Plain>().await,
                _ => engine.register::<Noted>().await,
            }
        })
    });
    for node in nodes.collect::<Vec<_>>() {
        node.await.unwrap().unwrap();
    }
    let mut kept = texts(&store, 1).await;
    kept.sort();
    let mut both = [Plain::contract().to_string(), Noted::contract().to_string()];
    both.sort();
    assert_eq!(kept, both);
}

pub(super) async fn of_rivals_that_break_with_each_other_one_starts(store: FaultyStore) {
    let [plain, upper] = [engine(&store), engine(&store)];
    let (plain, upper) = tokio::join!(
        tokio::spawn(async move { plain.register::<Plain>().await }),
        tokio::spawn(async move { upper.register::<Upper>().await }),
    );
    let started = [plain.unwrap().is_ok(), upper.unwrap().is_ok()];
    assert_ne!(started[0], started[1]);
    assert_eq!(texts(&store, 1).await.len(), 1);
}

fn engine_of(store: &FaultyStore, namespace: &str) -> Engine {
    Engine::builder(store.clone()).namespace(namespace).build().unwrap()
}

pub(super) async fn another_namespace_is_refused_at_the_start(store: FaultyStore) {
    engine_of(&store, "payments").register::<Plain>().await.unwrap();
    engine_of(&store, "payments").register::<Noted>().await.unwrap();
    let other = engine_of(&store, "payments-eu");
    for error in [
        other.register::<Plain>().await.unwrap_err(),
        other.register_anyway::<Upper>("ada", "never went live").await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "NAMESPACE_OTHER");
        assert!(error.to_string().contains("`payments`") && error.to_string().contains("`payments-eu`"), "{error}");
    }
    assert_eq!((texts(&store, 1).await.len(), store.audits()), (2, vec![]), "a refused one leaves nothing");
}

/// Also where nobody registered anything.
pub(super) async fn another_namespace_claims_nothing(store: FaultyStore) {
    let (tenant, pay) = (Tenant::new("acme").unwrap(), || Plain { payee: "ada".to_owned() });
    let work = |_| async { Ok(Reply::status(201)) };
    engine_of(&store, "payments").run(&tenant, &"k".parse().unwrap(), &pay(), work).await.unwrap();
    let other = engine_of(&store, "default");
    for key in ["k", "another"] {
        let refused = other.run(&tenant, &key.parse().unwrap(), &pay(), work).await.unwrap_err();
        let StoreError::Unusable(source) = refused else { panic!("{refused:?}") };
        assert_eq!(source.downcast_ref::<OtherNamespace>().unwrap().settled, "payments");
    }
    let scope = Scope::new(tenant, "pay", "another".parse().unwrap());
    assert!(store.look(&scope).await.unwrap().is_none());
}

pub(super) async fn of_rivals_with_two_namespaces_one_starts(store: FaultyStore) {
    let nodes = (0..16).map(|number| {
        let engine = engine_of(&store, ["blue", "green"][number % 2]);
        tokio::spawn(async move { engine.register::<Plain>().await.is_ok() })
    });
    let mut started = Vec::new();
    for node in nodes.collect::<Vec<_>>() {
        started.push(node.await.unwrap());
    }
    for pair in started.chunks(2) {
        assert_eq!(pair, &started[..2]);
        assert_ne!(pair[0], pair[1]);
    }
}

//! Every store, held to one conformance suite, and what each one promises besides.

// All of it is test; clippy sees that only of functions marked as one.
#![allow(clippy::unwrap_used)]

mod cleaning;
mod joining;
mod lasting;
mod memory;
mod operating;
mod postgres;
mod registering;
mod schemas;
mod sqlite;

use std::time::Duration;

use idem_core::{Engine, Rules, Store};

use crate::support::log::Log;

/// Runs one behaviour on a runtime of its own, as an application would.
fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// Of the due `key-1` to `key-5` the odd ones do not read.
async fn damage_is_passed_over(store: &(impl Store + Clone + 'static)) {
    for limit in [1, 2, 3, 100] {
        let log = Log::start();
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            let page = store.due(Duration::ZERO, last.as_ref(), limit).await.unwrap();
            let Some(end) = page.last() else { break };
            assert!(page.len() <= limit as usize);
            last = Some(end.record.clone());
            found.extend(page.into_iter().map(|found| found.record.scope.key().as_str().to_owned()));
        }
        assert_eq!(found, ["key-2", "key-4"], "in pages of {limit}");
        let log = log.text();
        for key in ["key-1", "key-3", "key-5"] {
            let line = log.lines().find(|line| line.contains(key)).unwrap_or_else(|| panic!("{key} is not in: {log}"));
            assert!(line.contains("ERROR") && line.contains("fence"), "{line}");
        }
        assert!(!log.contains("key-2"), "{log}");
    }
    let rules = Rules { grace: Duration::from_nanos(1), ..Rules::default() };
    let engine = Engine::builder(store.clone()).rules(rules).build().unwrap();
    let mut looked = Vec::new();
    for _ in 0..3 {
        looked.push(engine.recover_once(1).await.unwrap().looked);
    }
    assert_eq!(looked, [1, 1, 0]);
    assert_eq!(store.due(Duration::ZERO, None, 100).await.unwrap().len(), 0);
}

/// A behaviour that nobody runs promises nothing.
#[test]
fn every_behaviour_is_listed() {
    let testing = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idem-core/src/testing");
    let listed = std::fs::read_to_string(format!("{testing}.rs")).unwrap();
    let mut found = 0;
    for file in std::fs::read_dir(testing).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for behaviour in source.split("\npub async fn ").skip(1) {
            let (name, _) = behaviour.split_once('(').unwrap();
            assert!(listed.lines().any(|line| line.trim() == name), "`{name}` is not in `conformance!`");
            found += 1;
        }
    }
    assert!(found >= 60, "only {found} behaviours were found");
}

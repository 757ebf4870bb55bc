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

/// Runs one behaviour on a runtime of its own, as an application would.
fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
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

//! Every store, held to one conformance suite, and what each one promises besides.

mod memory;
mod sqlite;

/// Runs one behaviour on a runtime of its own, as an application would.
fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

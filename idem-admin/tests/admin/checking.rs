//! `migrate` and `check`.

use crate::bench::{Bench, program};
use crate::on_both;

on_both! {
    a_database_in_order_is_told_to_be
    no_sign_of_life_is_not_in_order
    a_migration_may_be_run_again
}

fn a_database_in_order_is_told_to_be(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.in_progress("key-2");
    bench.worker_is_alive();
    let seen = bench.json(&["check"]);
    assert_eq!(seen["in_order"], true);
    assert_eq!(seen["schema"]["found"], seen["schema"]["needed"]);
    assert_eq!(seen["settings"]["namespace"], "shop");
    let count = |state: &str| seen["unsettled"][state]["records"].as_u64().unwrap();
    assert_eq!(["parked", "unknown", "in_progress", "retryable"].map(count), [1, 0, 1, 0]);
    let shown = bench.done(&["check"]).out;
    assert!(shown.contains("namespace: shop") && shown.contains("in_order"), "{shown}");
}

fn no_sign_of_life_is_not_in_order(bench: &Bench) {
    let said = bench.admin(&["check", "--json"]);
    assert_eq!((said.code, said.error()["code"].as_str()), (6, Some("ADMIN_NOT_IN_ORDER")));
    assert_eq!(said.json()["in_order"], false);
    assert!(said.error()["message"].as_str().unwrap().contains("no worker has ever"), "{}", said.err);
    bench.worker_is_alive();
    bench.done(&["check"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let said = bench.admin(&["check", "--silence", "1ms"]);
    assert_eq!(said.code, 6);
    assert!(said.err.contains("has given a sign of life for"), "{}", said.err);
}

fn a_migration_may_be_run_again(bench: &Bench) {
    let first = bench.json(&["migrate"]);
    assert_eq!(first["schema"]["found"], first["schema"]["needed"]);
    assert_eq!(bench.json(&["migrate"]), first);
}

#[test]
fn a_file_without_a_schema_gets_one_by_migrate_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    let url = format!("sqlite:{}", file.display());
    let admin = |arguments: &[&str]| program().env("IDEM_DATABASE_URL", &url).args(arguments).output().unwrap();
    // Nothing is made by looking: a wrong path would stay unnoticed.
    for looking in [&["list"][..], &["check"], &["inspect", "a", "b", "c"]] {
        let output = admin(looking);
        assert_eq!(output.status.code(), Some(1), "{looking:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("[DATABASE_NOT_OPENABLE]"), "{output:?}");
        assert!(!file.exists(), "{looking:?}");
    }
    std::fs::write(&file, "").unwrap();
    assert_eq!(admin(&["list"]).status.code(), Some(1));
    let output = admin(&["check"]);
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("run `migrate`"), "{output:?}");
    assert!(admin(&["migrate"]).status.success());
    assert!(admin(&["list"]).status.success());
}

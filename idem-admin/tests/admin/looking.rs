//! `list` and `inspect`.

use std::collections::BTreeSet;

use crate::bench::{Bench, SECRET, program};
use crate::on_both;

on_both! {
    everything_that_is_not_settled_is_listed_by_how_it_stands
    a_list_is_narrowed_by_tenant_operation_call_and_time
    a_list_comes_in_pages_that_have_everything_once
    a_person_sees_a_table_and_how_to_go_on
    a_record_is_shown_with_its_calls_evidence_and_audit
    nothing_secret_is_shown_unless_it_is_asked_for
    a_record_that_is_not_there_is_an_exit_code_of_its_own
}

fn fill(bench: &Bench) {
    bench.completed("done-1");
    bench.parked("acme", "parked-1");
    bench.parked("globex", "parked-2");
    bench.unknown("acme", "unknown-1");
    bench.in_progress("running-1");
    bench.retryable("again-1");
}

fn everything_that_is_not_settled_is_listed_by_how_it_stands(bench: &Bench) {
    assert_eq!(bench.listed(&[]), []);
    fill(bench);
    let pair = |key: &str, state: &str| (key.to_owned(), state.to_owned());
    let all: BTreeSet<_> = bench.listed(&[]).into_iter().collect();
    let expected = [
        pair("parked-1", "parked"),
        pair("parked-2", "parked"),
        pair("unknown-1", "unknown"),
        pair("running-1", "in_progress"),
        pair("again-1", "retryable"),
    ];
    assert_eq!(all, expected.into());
    assert_eq!(bench.listed(&["--state", "unknown"]), [pair("unknown-1", "unknown")]);
    assert_eq!(bench.listed(&["--state", "in-progress"]), [pair("running-1", "in_progress")]);
    assert_eq!(bench.listed(&["--state", "retryable"]), [pair("again-1", "retryable")]);
    assert_eq!(bench.listed(&["--state", "parked"]).len(), 2);
}

fn a_list_is_narrowed_by_tenant_operation_call_and_time(bench: &Bench) {
    fill(bench);
    let keys =
        |arguments: &[&str]| -> BTreeSet<String> { bench.listed(arguments).into_iter().map(|(key, _)| key).collect() };
    let set = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(keys(&["--tenant", "globex"]), set(&["parked-2"]));
    assert_eq!(keys(&["--operation", "refund"]), set(&["again-1"]));
    assert_eq!(keys(&["--call", "credit"]), set(&["again-1"]));
    // Its mail is closed: only open calls count.
    assert_eq!(keys(&["--call", "mail"]), set(&[]));
    assert_eq!(keys(&["--call", "charge", "--state", "parked"]), set(&["parked-1", "parked-2"]));
    assert_eq!(keys(&["--older-than", "1h"]), set(&[]));
    assert_eq!(keys(&["--older-than", "0s"]).len(), 5);
    let past = ["--opened-from", "2020-01-01T00:00:00Z", "--opened-until", "2020-01-02T00:00:00Z"];
    assert_eq!(keys(&past), set(&[]));
    let all_time = ["--opened-from", "2020-01-01T00:00:00Z", "--opened-until", "9000-01-01T00:00:00Z"];
    // The running one has announced nothing.
    assert_eq!(keys(&all_time), set(&["parked-1", "parked-2", "unknown-1", "again-1"]));
    // From the moment of one call on it is found, and up to that moment it is not.
    let opened = bench.json(&["inspect", "acme", "refund", "again-1"])["calls"][0]["opened_at"].clone();
    let opened = opened.as_str().unwrap();
    assert!(keys(&["--opened-from", opened]).contains("again-1"));
    assert!(!keys(&["--opened-until", opened]).contains("again-1"));
}

fn a_list_comes_in_pages_that_have_everything_once(bench: &Bench) {
    for number in 0..7 {
        bench.parked("acme", &format!("key-{number}"));
    }
    for limit in ["1", "3", "7", "8"] {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut arguments = vec!["list", "--limit", limit];
            arguments.extend(after.as_deref().into_iter().flat_map(|mark| ["--after", mark]));
            let page = bench.json(&arguments);
            let records = page["records"].as_array().unwrap();
            assert!(records.len() <= limit.parse().unwrap());
            found.extend(records.iter().map(|record| record["key"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => after = Some(next.to_owned()),
                None => break,
            }
        }
        let once: BTreeSet<_> = found.iter().collect();
        assert_eq!((found.len(), once.len()), (7, 7), "in pages of {limit}");
    }
    let said = bench.admin(&["list", "--after", "nonsense", "--json"]);
    assert_eq!((said.code, said.error()["code"].as_str()), (2, Some("ADMIN_ARGUMENT")));
}

fn a_person_sees_a_table_and_how_to_go_on(bench: &Bench) {
    assert_eq!(bench.done(&["list"]).out, "Nothing of that kind.\n");
    bench.parked("acme", "key-1");
    bench.parked("acme", "key-2");
    let shown = bench.done(&["list", "--limit", "1"]).out;
    assert!(shown.contains("parked") && shown.contains("acme") && shown.contains("charge charge_"), "{shown}");
    let (_, after) = shown.trim_end().split_once("There may be more: --after ").unwrap();
    let rest = bench.done(&["list", "--after", after]).out;
    let has = |text: &str, key: &str| text.contains(key);
    assert_ne!(has(&shown, "key-1"), has(&rest, "key-1"), "{shown}{rest}");
    assert_ne!(has(&shown, "key-2"), has(&rest, "key-2"), "{shown}{rest}");
    assert!(!rest.contains("There may be more"), "{rest}");
}

fn a_record_is_shown_with_its_calls_evidence_and_audit(bench: &Bench) {
    let scope = bench.parked("acme", "key-1");
    bench.learn(&scope);
    let seen = bench.json(&["inspect", "acme", "pay", "key-1"]);
    assert_eq!(seen["state"], "parked");
    assert_eq!(seen["status"], "unknown_requires_recovery");
    let calls: Vec<_> = seen["calls"].as_array().unwrap().iter().map(|call| (&call["name"], &call["state"])).collect();
    assert_eq!(format!("{calls:?}"), r#"[(String("mail"), String("applied")), (String("charge"), String("open"))]"#);
    assert_eq!(seen["evidence"][0]["source"], "webhook");
    assert_eq!(seen["evidence"][0]["key"], seen["calls"][1]["key"]);
    assert_eq!(seen["checkpoint"]["name"], "reserved");
    assert_eq!(seen["audit"].as_array().unwrap().len(), 0);

    bench.done(&["ask-again", "acme", "pay", "key-1", "--actor", "ada", "--reason", "the bank is back"]);
    let seen = bench.json(&["inspect", "acme", "pay", "key-1"]);
    assert_eq!(seen["state"], "unknown");
    let row = &seen["audit"][0];
    assert_eq!((&row["action"], &row["actor"]), (&"ask again".into(), &"ada".into()));
    assert_eq!(row["reason"], "the bank is back");
    let shown = bench.done(&["inspect", "acme", "pay", "key-1"]).out;
    for line in ["state: unknown", "  name: charge", "  reason: the bank is back", "  source: webhook"] {
        assert!(shown.lines().any(|found| found == line), "{line} is not in\n{shown}");
    }
}

fn nothing_secret_is_shown_unless_it_is_asked_for(bench: &Bench) {
    let scope = bench.parked("acme", "key-1");
    bench.learn(&scope);
    bench.completed("key-2");
    for arguments in [
        &["list"][..],
        &["inspect", "acme", "pay", "key-1"],
        &["inspect", "acme", "pay", "key-2"],
        &[
            "resolve-all",
            "--call",
            "charge",
            "--as",
            "resume",
            "--applied",
            "charge=1",
            "--actor=a",
            "--reason=b",
            "--dry-run",
        ],
        &["check"],
    ] {
        for json in [&[][..], &["--json"]] {
            let said = bench.admin(&[arguments, json].concat());
            assert!(!said.out.is_empty(), "{}", said.err);
            assert!(!format!("{}{}", said.out, said.err).contains(SECRET), "{arguments:?}: {}{}", said.out, said.err);
        }
    }
    let parked = bench.json(&["inspect", "acme", "pay", "key-1", "--bodies"]);
    assert_eq!(parked["calls"][0]["outcome"], SECRET);
    assert_eq!(parked["evidence"][0]["outcome"], SECRET);
    assert_eq!(parked["checkpoint"]["data"], SECRET);
    let completed = bench.json(&["inspect", "acme", "pay", "key-2", "--bodies"]);
    assert_eq!(completed["answer"]["body"]["card"], SECRET);
    assert_eq!(completed["answer"]["headers"][0], format!("location: /{SECRET}"));
    assert_eq!(bench.json(&["inspect", "acme", "pay", "key-2"])["answer"]["status"], 201);
}

fn a_record_that_is_not_there_is_an_exit_code_of_its_own(bench: &Bench) {
    let said = bench.admin(&["inspect", "acme", "pay", "never", "--json"]);
    assert_eq!((said.code, said.error()["code"].as_str()), (3, Some("ADMIN_NO_RECORD")));
    let said = bench.admin(&["ask-again", "acme", "pay", "never", "--actor", "ada", "--reason", "why not"]);
    assert_eq!(said.code, 3);
    assert!(said.err.starts_with("idem-admin: there is no such record [ADMIN_NO_RECORD]"), "{}", said.err);
}

/// Whoever asks for help beside a customer must not show the password.
#[test]
fn help_and_errors_do_not_repeat_the_databases_url() {
    let url = "postgres://idem:hunter2@127.0.0.1:1/none";
    for arguments in [&["--help"][..], &["list", "--help"], &["list"], &["list", "--json"], &["nonsense"]] {
        let output = program().env("IDEM_DATABASE_URL", url).args(arguments).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!said.is_empty() && !said.contains("hunter2"), "{arguments:?}: {said}");
    }
    let output = program().args(["list", "--database", "mysql://idem:hunter2@db/none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hunter2"));
    assert_eq!(program().arg("list").output().unwrap().status.code(), Some(2), "no database");
}

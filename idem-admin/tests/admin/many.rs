//! The same verdict on many records.

use serde_json::Value;

use crate::bench::{Bench, file};
use crate::on_both;

on_both! {
    a_dry_run_shows_the_records_and_changes_nothing
    many_are_decided_on_only_where_it_is_confirmed
    a_bulk_is_bounded_and_tells_that_there_is_more
    a_record_that_does_not_fit_is_told_of_and_holds_up_no_other
    a_bulk_decides_on_what_the_dry_run_showed_and_on_nothing_else
    a_list_of_something_else_decides_nothing
}

const BECAUSE: [&str; 4] = ["--actor", "ada", "--reason", "the outage of 3 May"];

fn ask_again<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["ask-again-all", "--call", "charge"], arguments, &BECAUSE].concat()
}

fn state_of(bench: &Bench, tenant: &str, key: &str) -> Value {
    bench.json(&["inspect", tenant, "pay", key])["state"].clone()
}

/// What a dry run shows, as the file that it writes.
fn listed(bench: &Bench, call: &str) -> String {
    let list = bench.folder.path().join("list.json").to_str().unwrap().to_owned();
    let dry_run = ["resolve-all", "--call", call, "--as", "completed", "--status", "201", "--dry-run", "--list", &list];
    bench.done(&[&dry_run[..], &BECAUSE].concat());
    list
}

/// One was parked since, one was asked about again and parked again, one was decided on by another person.
fn a_bulk_decides_on_what_the_dry_run_showed_and_on_nothing_else(bench: &Bench) {
    bench.parked("acme", "key-as-shown");
    let asked = bench.parked("acme", "key-asked");
    bench.parked("acme", "key-done");
    let list = listed(bench, "charge");
    let since = bench.parked("acme", "key-since");
    bench.done(&[&["ask-again", "acme", "pay", "key-asked"][..], &BECAUSE].concat());
    bench.park(asked);
    let done = ["resolve", "acme", "pay", "key-done", "--as", "completed", "--status", "200"];
    bench.done(&[&done[..], &BECAUSE].concat());

    let verdict = ["resolve-all", "--call", "charge", "--as", "completed", "--status", "201", "--yes", "--json"];
    let said = bench.admin(&[&verdict[..], &BECAUSE].concat());
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("ADMIN_UNCONFIRMED")), "of which records?");
    let said = bench.admin(&[&verdict[..], &["--list", &list], &BECAUSE].concat());
    assert_eq!((said.code, said.error()["code"].as_str()), (5, Some("ADMIN_SOME_REFUSED")));
    let told = said.json();
    assert_eq!(told["decided"], 1);
    let mut refused: Vec<_> =
        told["refused"].as_array().unwrap().iter().map(|one| format!("{} {}", one["key"], one["code"])).collect();
    refused.sort();
    assert_eq!(refused, [r#""key-asked" "RESOLVE_NOT_AS_SEEN""#, r#""key-done" "RESOLVE_NOT_PARKED""#]);
    assert_eq!(told["left"].as_array().unwrap().len(), 1);
    assert_eq!(told["left"][0]["key"], since.key().as_str());
    for (key, state) in [("key-since", "parked"), ("key-asked", "parked")] {
        assert_eq!(state_of(bench, "acme", key), state);
    }
    assert_eq!(bench.json(&["inspect", "acme", "pay", "key-as-shown"])["answer"]["status"], 201);
    assert_eq!(bench.json(&["inspect", "acme", "pay", "key-done"])["answer"]["status"], 200);
    let shown = bench.admin(&[&verdict[..7], &["--yes", "--list", &list], &BECAUSE].concat()).out;
    assert!(shown.contains("left: acme pay key-since"), "{shown}");
}

fn a_list_of_something_else_decides_nothing(bench: &Bench) {
    bench.parked_with_both_calls_open("acme", "key-1");
    let list = listed(bench, "mail");
    let damaged = file(bench, "damaged.json", r#"{"call":"charge"}"#);
    for list in [&list, damaged.to_str().unwrap(), "/nowhere"] {
        let verdict = ["resolve-all", "--call", "charge", "--as", "completed", "--status", "201", "--yes", "--json"];
        let said = bench.admin(&[&verdict[..], &["--list", list], &BECAUSE].concat());
        assert_eq!((said.code, said.error()["code"].as_str()), (2, Some("ADMIN_ARGUMENT")), "{list}");
    }
    assert_eq!(state_of(bench, "acme", "key-1"), "parked");
}

fn a_dry_run_shows_the_records_and_changes_nothing(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.parked("globex", "key-2");
    bench.unknown("acme", "key-3");
    let shown = bench.json(&ask_again(&["--dry-run", "--tenant", "globex"]));
    let keys: Vec<_> = shown["records"].as_array().unwrap().iter().map(|record| &record["key"]).collect();
    assert_eq!(keys, ["key-2"]);
    assert_eq!((&shown["dry_run"], &shown["more"]), (&true.into(), &false.into()));
    let shown = bench.done(&ask_again(&["--dry-run"])).out;
    assert!(shown.trim_end().ends_with("It would be these 2 records. Nothing was changed."), "{shown}");
    assert!(shown.contains("key-1") && shown.contains("key-2") && !shown.contains("key-3"), "{shown}");
    assert_eq!(bench.listed(&["--state", "parked"]).len(), 2);
}

fn many_are_decided_on_only_where_it_is_confirmed(bench: &Bench) {
    for number in 0..3 {
        bench.parked("acme", &format!("key-{number}"));
    }
    bench.parked("globex", "key-other");
    let said = bench.admin(&ask_again(&["--tenant", "acme", "--json"]));
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("ADMIN_UNCONFIRMED")));
    assert_eq!(bench.listed(&["--state", "parked"]).len(), 4);
    // Not both: which one it was would be a guess.
    assert_eq!(bench.admin(&ask_again(&["--yes", "--dry-run"])).code, 2);

    assert_eq!(bench.json(&ask_again(&["--tenant", "acme", "--yes"]))["decided"], 3);
    assert_eq!(bench.listed(&["--state", "parked"]), [("key-other".to_owned(), "parked".to_owned())]);
    let list = listed(bench, "charge");
    let verdict = ["resolve-all", "--call", "charge", "--as", "completed", "--status", "201", "--yes", "--list", &list];
    assert_eq!(bench.json(&[&verdict[..], &BECAUSE].concat())["decided"], 1);
    assert_eq!(bench.json(&["inspect", "globex", "pay", "key-other"])["status"], "completed");
    let row = &bench.json(&["inspect", "globex", "pay", "key-other"])["audit"][0];
    assert_eq!((&row["actor"], &row["reason"]), (&"ada".into(), &BECAUSE[3].into()));
}

fn a_bulk_is_bounded_and_tells_that_there_is_more(bench: &Bench) {
    for number in 0..5 {
        bench.parked("acme", &format!("key-{number}"));
    }
    assert_eq!(bench.json(&ask_again(&["--dry-run", "--limit", "2"]))["more"], true);
    assert_eq!(bench.json(&ask_again(&["--yes", "--limit", "2"]))["decided"], 2);
    assert_eq!(bench.listed(&["--state", "parked"]).len(), 3);
    assert_eq!(bench.json(&ask_again(&["--yes"]))["decided"], 3);
    assert_eq!(bench.json(&ask_again(&["--yes"]))["decided"], 0);
}

fn a_record_that_does_not_fit_is_told_of_and_holds_up_no_other(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.parked("acme", "key-2");
    // In the second one the mail is open too, of which this verdict says nothing.
    bench.parked_with_both_calls_open("acme", "key-both");
    let list = listed(bench, "charge");
    for end in [&["--as", "resume", "--applied", "charge=7"][..], &["--as", "completed", "--status", "201"]] {
        let verdict = ["resolve-all", "--call", "charge", "--yes", "--json", "--list", &list];
        let said = bench.admin(&[&verdict[..], end, &BECAUSE].concat());
        assert_eq!((said.code, said.error()["code"].as_str()), (5, Some("ADMIN_SOME_REFUSED")));
        let told = said.json();
        let refused = told["refused"].as_array().unwrap();
        let both = refused.iter().find(|refused| refused["key"] == "key-both").unwrap();
        assert_eq!(both["code"], "RESOLVE_OTHER_CALL_OPEN");
        assert!(both["message"].as_str().unwrap().contains("`mail` is open too"), "{both}");
        assert_eq!(told["decided"].as_u64().unwrap() + refused.len() as u64, 3);
        assert_eq!(state_of(bench, "acme", "key-both"), "parked");
    }
    assert_eq!(state_of(bench, "acme", "key-1"), Value::Null);
}

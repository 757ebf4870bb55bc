//! `resolve` and `ask-again`.

use idem_core::{Answer, Claim, Outcome, Reply};

use crate::bench::{Bench, Lost, SECRET, file};
use crate::on_both;

on_both! {
    a_payment_that_was_made_gets_its_answer
    a_payment_that_was_refused_gets_its_refusal
    the_next_attempt_goes_on_with_what_was_found_out
    what_may_be_made_twice_is_decided_only_where_it_is_confirmed
    what_was_seen_is_decided_on_and_nothing_else
    a_verdict_against_evidence_is_given_only_by_name
    an_answer_that_is_not_to_be_kept_is_kept_by_nobody
    only_a_parked_record_is_decided_on
    a_verdict_that_does_not_fit_changes_nothing
    nothing_is_decided_without_a_name_and_a_reason
}

const BECAUSE: [&str; 4] = ["--actor", "ada", "--reason", "on the bank's statement"];

fn resolve(arguments: &[&'static str]) -> Vec<&'static str> {
    [&["resolve", "acme", "pay", "key-1"], arguments, &BECAUSE].concat()
}

/// What the client's retry gets, without the work running.
fn replayed(bench: &Bench) -> Reply {
    match bench.run("acme", "key-1", async |_| panic!("it is settled")) {
        Outcome::Second(Answer::Replay { response, .. }) => response.into(),
        other => panic!("{other:?}"),
    }
}

fn a_payment_that_was_made_gets_its_answer(bench: &Bench) {
    bench.parked("acme", "key-1");
    let body = file(bench, "answer.json", r#"{"id":"pay_1"}"#);
    let mut arguments = resolve(&["--as", "completed", "--status", "201", "--header", "Location: /payments/pay_1"]);
    let body = body.to_str().unwrap().to_owned();
    arguments.extend(["--body-file", &body]);
    bench.done(&arguments);
    let reply = replayed(bench);
    assert_eq!((reply.status, &*reply.body), (201, &br#"{"id":"pay_1"}"#[..]));
    assert!(reply.headers.contains(&("location".to_owned(), b"/payments/pay_1".to_vec())), "{:?}", reply.headers);
    let audit = bench.json(&["inspect", "acme", "pay", "key-1"])["audit"].clone();
    assert_eq!(audit[0]["action"], "resolve: completed 201; by implication: charge applied");
    assert_eq!((&audit[0]["actor"], &audit[0]["reason"]), (&"ada".into(), &BECAUSE[3].into()));
}

fn a_payment_that_was_refused_gets_its_refusal(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.done(&resolve(&["--as", "refused", "--status", "402", "--yes"]));
    assert_eq!(replayed(bench).status, 402);
    assert_eq!(bench.json(&["inspect", "acme", "pay", "key-1"])["calls"][1]["state"], "rejected");
}

fn the_next_attempt_goes_on_with_what_was_found_out(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.done(&resolve(&["--as", "resume", "--applied", r#"charge={"receipt":7}"#]));
    let work = async |claim: Claim| {
        let mail: String = claim.call("mail", async |_| -> Result<_, Lost> { panic!("it was sent") }).await?;
        let charge: serde_json::Value =
            claim.call("charge", async |_| -> Result<_, Lost> { panic!("it was charged") }).await?;
        assert!(!mail.is_empty());
        Ok(Reply::status(201).body(charge["receipt"].to_string()))
    };
    let Outcome::Done { reply, .. } = bench.run("acme", "key-1", work) else { panic!("it goes on") };
    assert_eq!(reply.body, b"7");

    // A refused call: the work gets the refusal, and gives it.
    bench.parked("acme", "key-2");
    let arguments = ["resolve", "acme", "pay", "key-2", "--as", "resume", "--rejected", "charge=402", "--yes"];
    bench.done(&[&arguments[..], &BECAUSE].concat());
    let work = async |claim: Claim| {
        let _: u32 = claim.call("charge", async |_| -> Result<_, Lost> { panic!("it was refused") }).await?;
        unreachable!("a refusal ends the work")
    };
    let Outcome::Done { reply, .. } = bench.run("acme", "key-2", work) else { panic!("it goes on") };
    assert_eq!(reply.status, 402);
}

/// The next attempt makes it again, or the client is told that a new key duplicates nothing.
fn what_may_be_made_twice_is_decided_only_where_it_is_confirmed(bench: &Bench) {
    for (key, verdict) in [
        ("key-3", &["--as", "refused", "--status", "402"][..]),
        ("key-4", &["--as", "resume", "--rejected", "charge=402"]),
    ] {
        bench.parked("acme", key);
        let arguments = [&["resolve", "acme", "pay", key], verdict, &BECAUSE, &["--json"]].concat();
        let said = bench.admin(&arguments);
        assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("ADMIN_UNCONFIRMED")), "{verdict:?}");
        assert_eq!(bench.json(&["inspect", "acme", "pay", key])["state"], "parked");
        bench.done(&[&arguments[..], &["--yes"]].concat());
    }
    for (key, verdict) in
        [("key-1", &["--as", "never-happened"][..]), ("key-2", &["--as", "resume", "--not-made", "charge"])]
    {
        bench.parked("acme", key);
        let arguments = [&["resolve", "acme", "pay", key], verdict, &BECAUSE].concat();
        let before = bench.json(&["inspect", "acme", "pay", key]);
        let said = bench.admin(&[&arguments[..], &["--json"]].concat());
        assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("ADMIN_UNCONFIRMED")));
        let after = bench.json(&["inspect", "acme", "pay", key]);
        assert_eq!((&after["state"], &after["fence"]), (&before["state"], &before["fence"]));
        bench.done(&[&arguments[..], &["--yes"]].concat());
        let work = async |claim: Claim| {
            let receipt: u32 = claim.call("charge", async |_| Ok::<_, Lost>(8)).await?;
            Ok(Reply::status(201).body(receipt.to_string()))
        };
        let Outcome::Done { reply, .. } = bench.run("acme", key, work) else { panic!("it is made again") };
        assert_eq!(reply.body, b"8");
    }
}

/// Somebody has it asked about again while it is looked at.
fn what_was_seen_is_decided_on_and_nothing_else(bench: &Bench) {
    let scope = bench.parked("acme", "key-1");
    let seen = bench.json(&["inspect", "acme", "pay", "key-1"])["fence"].as_u64().unwrap().to_string();
    bench.done(&[&["ask-again", "acme", "pay", "key-1"][..], &BECAUSE].concat());
    bench.park(scope);
    let verdict = |fence: &str| {
        let arguments = ["resolve", "acme", "pay", "key-1", "--as", "completed", "--status", "201", "--fence", fence];
        bench.admin(&[&arguments[..], &BECAUSE, &["--json"]].concat())
    };
    let said = verdict(&seen);
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("RESOLVE_NOT_AS_SEEN")));
    let now = bench.json(&["inspect", "acme", "pay", "key-1"]);
    assert_eq!(now["state"], "parked");
    assert_eq!(verdict(&now["fence"].to_string()).code, 0);
}

/// The webhook has said that the charge happened.
fn a_verdict_against_evidence_is_given_only_by_name(bench: &Bench) {
    let scope = bench.parked("acme", "key-1");
    bench.learn(&scope);
    let dates = bench.json(&["inspect", "acme", "pay", "key-1"]);
    assert!(dates["created_at"].as_str() <= dates["evidence"][0]["received_at"].as_str(), "{dates}");
    let refused = resolve(&["--as", "refused", "--status", "402", "--yes", "--json"]);
    let said = bench.admin(&refused);
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("RESOLVE_AGAINST_EVIDENCE")));
    bench.done(&[&refused[..], &["--against-evidence", "charge"]].concat());
    let audit = &bench.json(&["inspect", "acme", "pay", "key-1"])["audit"][0];
    let action = "resolve: refused 402; by implication: charge rejected; against evidence: charge applied by webhook";
    assert_eq!(audit["action"], action);
    assert!(audit["acted_at"].as_str() >= dates["evidence"][0]["received_at"].as_str(), "{audit}");
}

/// The engine that claims has told the store which operations keep no answers.
fn an_answer_that_is_not_to_be_kept_is_kept_by_nobody(bench: &Bench) {
    bench.parked_card("key-1");
    let body = file(bench, "card.json", SECRET);
    let resolve = |arguments: &[&str]| {
        let verdict = ["resolve", "acme", "issue_card", "key-1", "--as", "completed", "--status", "201", "--json"];
        bench.admin(&[&verdict[..], arguments, &BECAUSE].concat())
    };
    for more in [["--body-file", body.to_str().unwrap()], ["--header", "etag: 1"]] {
        let said = resolve(&more);
        assert_eq!((said.code, said.error()["code"].as_str()), (2, Some("ADMIN_ARGUMENT")), "{more:?}");
        assert!(said.err.contains("`issue_card` are written anew"), "{}", said.err);
    }
    assert_eq!(resolve(&["--resource", "card=card_1"]).code, 0);
    let shown = bench.json(&["inspect", "acme", "issue_card", "key-1", "--bodies"]);
    assert_eq!((&shown["answer"]["status"], &shown["answer"]["body"]), (&201.into(), &serde_json::Value::Null));
    assert_eq!(shown["resource"], serde_json::json!({ "type": "card", "id": "card_1" }));
    match bench.card("key-1", async |_| panic!("it is settled")) {
        Outcome::Second(Answer::NotKept { response, resource, .. }) => {
            assert_eq!((response.status, response.schema_version()), (201, Some(3)));
            assert_eq!(resource.unwrap().id, "card_1");
        }
        other => panic!("{other:?}"),
    }
}

fn only_a_parked_record_is_decided_on(bench: &Bench) {
    bench.unknown("acme", "key-1");
    let said = bench.admin(&[&resolve(&["--as", "completed", "--status", "201"])[..], &["--json"]].concat());
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("RESOLVE_NOT_PARKED")));
    let said = bench.admin(&[&["ask-again", "acme", "pay", "key-1"][..], &BECAUSE].concat());
    assert_eq!(said.code, 4);
    assert!(said.err.contains("[RESOLVE_NOT_PARKED]") && said.err.contains("no person is needed"), "{}", said.err);
}

fn a_verdict_that_does_not_fit_changes_nothing(bench: &Bench) {
    bench.parked("acme", "key-1");
    let before = bench.json(&["inspect", "acme", "pay", "key-1"]);
    for (verdict, code, name) in [
        (&["--as", "completed", "--status", "409"][..], 4, "RESOLVE_STATUS"),
        (&["--as", "refused", "--status", "201", "--yes"], 4, "RESOLVE_STATUS"),
        (&["--as", "completed", "--status", "201", "--resource", "pay_1"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "completed", "--status", "201", "--against-evidence", "mail", "--yes"], 4, "RESOLVE_CALL_NOT_OPEN"),
        (&["--as", "resume"], 4, "RESOLVE_CALL_LEFT_OPEN"),
        (&["--as", "resume", "--applied", "mail=1"], 4, "RESOLVE_CALL_NOT_OPEN"),
        (&["--as", "completed"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "resume", "--status", "201", "--applied", "charge=1"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "resume", "--applied", "charge"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "resume", "--applied", "charge={"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "resume", "--rejected", "charge=200"], 2, "ADMIN_ARGUMENT"),
        (&["--as", "completed", "--status", "201", "--header", "set-cookie: a"], 2, "CONFIG_HEADER_NOT_KEPT"),
        (&["--as", "completed", "--status", "201", "--body-file", "/nowhere"], 2, "ADMIN_ARGUMENT"),
    ] {
        let said = bench.admin(&[&resolve(verdict)[..], &["--json"]].concat());
        assert_eq!((said.code, said.error()["code"].as_str()), (code, Some(name)), "{verdict:?}");
    }
    let mut after = bench.json(&["inspect", "acme", "pay", "key-1"]);
    after["age_seconds"] = before["age_seconds"].clone();
    assert_eq!(after, before);
}

fn nothing_is_decided_without_a_name_and_a_reason(bench: &Bench) {
    bench.parked("acme", "key-1");
    let ask = ["ask-again", "acme", "pay", "key-1"];
    for missing in [&[][..], &["--actor", "ada"], &["--reason", "the bank is back"]] {
        assert_eq!(bench.admin(&[&ask[..], missing].concat()).code, 2, "{missing:?}");
    }
    let said = bench.admin(&[&ask[..], &["--actor", "ada", "--reason", " ", "--json"]].concat());
    assert_eq!((said.code, said.error()["code"].as_str()), (4, Some("RESOLVE_UNEXPLAINED")));
    let inspected = bench.json(&["inspect", "acme", "pay", "key-1"]);
    assert_eq!((&inspected["state"], inspected["audit"].as_array().unwrap().len()), (&"parked".into(), 0));
}

//! `resolve` and `ask-again`.

use idem_core::{Answer, Claim, Outcome, Reply};

use crate::bench::{Bench, Lost, file};
use crate::on_both;

on_both! {
    a_payment_that_was_made_gets_its_answer
    a_payment_that_was_refused_gets_its_refusal
    the_next_attempt_goes_on_with_what_was_found_out
    what_never_happened_is_made_again_only_where_it_is_confirmed
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
    assert_eq!(audit[0]["action"], "resolve: completed 201");
    assert_eq!((&audit[0]["actor"], &audit[0]["reason"]), (&"ada".into(), &BECAUSE[3].into()));
}

fn a_payment_that_was_refused_gets_its_refusal(bench: &Bench) {
    bench.parked("acme", "key-1");
    bench.done(&resolve(&["--as", "refused", "--status", "402"]));
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
    let arguments = ["resolve", "acme", "pay", "key-2", "--as", "resume", "--rejected", "charge=402"];
    bench.done(&[&arguments[..], &BECAUSE].concat());
    let work = async |claim: Claim| {
        let _: u32 = claim.call("charge", async |_| -> Result<_, Lost> { panic!("it was refused") }).await?;
        unreachable!("a refusal ends the work")
    };
    let Outcome::Done { reply, .. } = bench.run("acme", "key-2", work) else { panic!("it goes on") };
    assert_eq!(reply.status, 402);
}

fn what_never_happened_is_made_again_only_where_it_is_confirmed(bench: &Bench) {
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
        (&["--as", "refused", "--status", "201"], 4, "RESOLVE_STATUS"),
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

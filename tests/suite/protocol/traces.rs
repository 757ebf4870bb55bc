//! What the log says of requests, and what it does not.

use idem_core::events::{Event, Observer, TracingObserver};
use idem_core::{CallClass, CallError, Claim, Engine, Fate, IdempotentCommand, MemoryStore, Outcome, Reply, Tenant};

use crate::protocol::events::one_of_each;
use crate::support::log::Log;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    cents: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct Lost;

impl CallError for Lost {
    fn fate(&self) -> Fate {
        Fate::Unknown
    }
}

const KEY: &str = "secret-order-77";
const TENANT: &str = "secret-merchant";

async fn pay(engine: &Engine, cents: u64, charge: Result<u32, Lost>) -> Outcome {
    let work = async |claim: Claim| {
        tracing::info!("about to charge");
        let receipt: u32 = claim.call("charge", async |_| charge).await?;
        Ok(Reply::status(201).body(receipt.to_string()))
    };
    engine.run(&Tenant::new(TENANT).unwrap(), &KEY.parse().unwrap(), &Pay { cents }, work).await.unwrap()
}

fn engine() -> Engine {
    let engine =
        Engine::builder(MemoryStore::new()).observer(TracingObserver).call::<Pay>("charge", CallClass::Neither);
    engine.build().unwrap()
}

/// The line of the log that ends with this message and has all of these.
fn line<'a>(log: &'a str, message: &str, has: &[&str]) -> &'a str {
    let mut lines = log.lines().filter(|line| line.contains(&format!(" {message}")));
    let found = lines.find(|line| has.iter().all(|text| line.contains(text)));
    found.unwrap_or_else(|| panic!("no `{message}` with {has:?} in\n{log}"))
}

#[tokio::test]
async fn a_request_is_logged_with_operation_outcome_and_state() {
    let log = Log::start();
    let engine = engine();
    pay(&engine, 5, Ok(7)).await;
    pay(&engine, 5, Ok(8)).await;
    pay(&engine, 6, Ok(9)).await;
    let log = log.text();
    line(&log, "claimed", &["INFO", "idempotency", r#"operation="pay""#, r#"how="first""#, "attempt=1"]);
    line(&log, "called", &["INFO", r#"call="charge""#, r#"outcome="applied""#, "took="]);
    line(&log, "ended", &["INFO", r#"state="completed""#, "ran=", "stored="]);
    line(&log, "answered", &["INFO", r#"outcome="replay""#, "age="]);
    line(&log, "answered", &["WARN", r#"outcome="mismatch""#]);
}

#[tokio::test]
async fn what_nobody_knows_the_end_of_is_a_warning() {
    let log = Log::start();
    let outcome = pay(&engine(), 5, Err(Lost)).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    let log = log.text();
    line(&log, "called", &["WARN", r#"outcome="unknown""#]);
    line(&log, "ended", &["WARN", r#"state="unknown_requires_recovery""#]);
}

/// Whatever the work logs stands in the span, by which it is found from an id that was derived from the command.
#[tokio::test]
async fn the_work_runs_in_a_span_that_names_the_command_and_not_its_key() {
    let log = Log::start();
    let engine = engine();
    let mut id = String::new();
    let work = async |claim: Claim| {
        id = claim.derived_id("pay");
        tracing::info!("about to charge");
        Ok(Reply::status(201))
    };
    engine.run(&Tenant::new(TENANT).unwrap(), &KEY.parse().unwrap(), &Pay { cents: 5 }, work).await.unwrap();
    let log = log.text();
    let id = format!("id={:?}", id.strip_prefix("pay_").unwrap());
    line(&log, "about to charge", &["idempotent{", r#"operation="pay""#, "attempt=1", &id]);
    line(&log, "ended", &["idempotent{", &id, r#"state="completed""#]);
    assert!(!line(&log, "claimed", &[]).contains("idempotent{"), "the work had not begun");
}

#[tokio::test]
async fn neither_key_nor_tenant_is_logged() {
    let log = Log::start();
    let engine = engine();
    pay(&engine, 5, Err(Lost)).await;
    pay(&engine, 5, Ok(7)).await;
    pay(&engine, 6, Ok(7)).await;
    let log = log.text();
    assert!(log.lines().count() >= 6, "{log}");
    assert!(!log.contains(KEY) && !log.contains(TENANT), "{log}");
}

/// A new event that nobody logs would be missed here.
#[test]
fn every_event_is_a_line_of_its_own_and_alerts_are_errors() {
    let log = Log::start();
    for event in one_of_each() {
        let before = log.text().lines().count();
        TracingObserver.observe(&event);
        let lines = log.text().lines().count() - before;
        // What comes every few seconds is for whoever asks for it: this log takes no details.
        let is_detail = matches!(event, Event::Swept(_) | Event::Oldest(_) | Event::WorkerSeen { .. });
        assert_eq!(lines, usize::from(!is_detail), "{event:?}");
    }
    let log = log.text();
    for alert in ["not stored", "hung", "store failed", "contradicted", "parked", "no worker", "worker broke"] {
        line(&log, alert, &["ERROR", "idempotency"]);
    }
}

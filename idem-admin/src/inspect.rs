//! `inspect`: all that is known of one record.

use idem_core::Status;
use idem_core::operator::Inspection;
use idem_core::store::Dated;
use serde_json::{Value, json};

use crate::args::Inspect;
use crate::database::Database;
use crate::error::AdminError;
use crate::show::{self, Body, Line, instant};

pub(crate) async fn run(database: &Database, asked: &Inspect, as_json: bool) -> Result<(), AdminError> {
    let found = database.engine().await?.inspect(&asked.which.scope()).await?.ok_or(AdminError::NoRecord)?;
    let seen = seen(&found, asked.bodies)?;
    if as_json {
        println!("{seen}");
    } else {
        tell("", &seen);
    }
    Ok(())
}

fn seen(found: &Inspection, bodies: bool) -> Result<Value, AdminError> {
    let record = &found.record;
    let mut seen = serde_json::to_value(Line::at(record, found.now, bodies))?;
    seen["hash"] = json!(record.hash.to_string());
    match &record.status {
        Status::InProgress { locked_until } => seen["lease_until"] = json!(instant(*locked_until)),
        Status::FailedRetryable { next_attempt_at, parked_at, .. } => {
            seen["next_attempt_at"] = json!(instant(*next_attempt_at));
            seen["parked_at"] = json!(parked_at.map(instant));
        }
        Status::Unknown { next_ask_at, parked_at, .. } => {
            seen["next_question_at"] = json!(instant(*next_ask_at));
            seen["parked_at"] = json!(parked_at.map(instant));
        }
        Status::Completed(finished) | Status::FailedReplayable(finished) => {
            let response = &finished.response;
            seen["answer"] = json!({
                "status": response.status,
                "body": response.body.as_deref().map(|body| Body::of(body, bodies)),
                "stored_at": instant(finished.at),
                "replayed_until": instant(finished.expires_at),
            });
            if bodies {
                let header = |(name, value): &(String, Vec<u8>)| format!("{name}: {}", String::from_utf8_lossy(value));
                seen["answer"]["headers"] = json!(response.headers.iter().map(header).collect::<Vec<_>>());
            }
        }
        Status::Expired { purge_at } => seen["forgotten_at"] = json!(instant(*purge_at)),
    }
    if let Some(resource) = &record.resource {
        seen["resource"] = json!({ "type": resource.kind, "id": resource.id });
    }
    if let Some(point) = &record.checkpoint {
        let data = Body::of(&point.data, bodies);
        seen["checkpoint"] = json!({ "name": point.name, "version": point.version, "data": data });
    }
    let evidence = found.evidence.iter().map(|Dated { at, what: learned }| {
        json!({
            "received_at": instant(*at),
            "key": learned.key.as_str(),
            "source": learned.source,
            "state": show::call_state(&learned.state),
            "outcome": Body::of_state(&learned.state, bodies),
        })
    });
    seen["evidence"] = evidence.collect();
    let audit = found.audit.iter().map(|Dated { at, what: row }| {
        json!({ "acted_at": instant(*at), "action": row.action, "actor": row.actor, "reason": row.reason })
    });
    seen["audit"] = audit.collect();
    Ok(seen)
}

/// The same, one line for each thing that is known.
fn tell(indent: &str, value: &Value) {
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => println!("{indent}{name}: none"),
            Value::Array(items) if items.iter().all(Value::is_object) => {
                for item in items {
                    println!("{indent}{name}:");
                    tell(&format!("{indent}  "), item);
                }
            }
            Value::Object(_) => {
                println!("{indent}{name}:");
                tell(&format!("{indent}  "), value);
            }
            Value::String(text) => println!("{indent}{name}: {text}"),
            value => println!("{indent}{name}: {value}"),
        }
    }
}

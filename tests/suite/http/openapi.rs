//! The OpenAPI description, by a validator, and against what is really answered.

use axum::http::StatusCode;
use idem_axum::openapi::{
    Described, IdempotencyKeyHeader, InProgressAccepted, OptionalIdempotencyKeyHeader, ProblemDocument, Refusals,
};
use idem_axum::{Code, IdempotencyKey, MemoryStore};
use regex::Regex;
use roas::validation::{Options, Validate};
use serde_json::{Value, json};
use utoipa::{OpenApi, PartialSchema};

use crate::http::bench::{Server, idem, pay};

/// Makes a payment.
#[utoipa::path(post, path = "/payments", params(IdempotencyKeyHeader), responses((status = 201, description = "Paid"), (status = 402, description = "Declined"), Refusals))]
#[expect(dead_code, reason = "described, never called")]
async fn create() {}

/// Searches.
#[utoipa::path(post, path = "/search", params(OptionalIdempotencyKeyHeader), responses((status = 200, description = "Found"), Refusals, InProgressAccepted))]
#[expect(dead_code, reason = "described, never called")]
async fn search() {}

/// Shows a payment; nothing of idem's.
#[utoipa::path(get, path = "/payments/{id}", params(("id" = String, Path)), responses((status = 200, description = "A payment"), (status = 409, description = "Its own")))]
#[expect(dead_code, reason = "described, never called")]
async fn show() {}

#[derive(OpenApi)]
#[openapi(paths(create, search, show), modifiers(&Described))]
struct Api;

fn document() -> Value {
    serde_json::to_value(Api::openapi()).unwrap()
}

fn valid(document: &Value) -> Result<(), String> {
    let spec: roas::v3_1::spec::Spec = serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    spec.validate(Options::IgnoreMissingTags.into(), None).map_err(|error| error.to_string())
}

#[test]
fn the_description_is_valid_and_a_planted_mistake_is_found() {
    let mut document = document();
    assert_eq!(valid(&document), Ok(()));
    document["paths"]["/payments"]["post"]["parameters"][0]["name"].take();
    assert!(valid(&document).is_err());
    let mut document = self::document();
    document["paths"]["/payments"]["post"]["responses"]["409"]["description"].take();
    assert!(valid(&document).is_err());
}

#[test]
fn the_key_is_a_header_that_is_needed_or_not_and_its_pattern_takes_keys_only() {
    let document = document();
    for (path, needed) in [("/payments", true), ("/search", false)] {
        let key = &document["paths"][path]["post"]["parameters"][0];
        assert_eq!(
            (&key["name"], &key["in"], &key["required"]),
            (&json!("Idempotency-Key"), &json!("header"), &json!(needed))
        );
        let pattern = Regex::new(key["schema"]["pattern"].as_str().unwrap()).unwrap();
        for byte in 0..=u8::MAX {
            let is_key = IdempotencyKey::from_bytes(&[b'a', byte, b'b']).is_ok();
            let bare = format!("a{}b", char::from(byte));
            assert_eq!(pattern.is_match(&bare), is_key, "{bare:?}");
            assert_eq!(pattern.is_match(&format!("\"{bare}\"")), is_key, "{bare:?} in quotes");
        }
        for broken in ["", "\"\"", "\"a", "a\"", "\"a\";b", "\"a\" "] {
            assert!(!pattern.is_match(broken), "{broken:?}");
        }
    }
}

#[test]
fn every_refusal_is_described_under_its_status_and_no_other_operation_is_touched() {
    let document = document();
    for path in ["/payments", "/search"] {
        let responses = &document["paths"][path]["post"]["responses"];
        for code in Code::ALL {
            let described = responses[code.status().to_string()]["description"].as_str().unwrap();
            assert!(described.contains(code.as_str()), "{path}: {code:?}");
        }
        for status in ["400", "413", "415", "422"] {
            assert!(responses[status]["description"].as_str().unwrap().contains("IDEMPOTENCY_REQUEST_INVALID"));
        }
        // What other statuses a code has, by an option or to the first client.
        for (status, code) in [("422", Code::KeyReused), ("503", Code::OutcomeUnknown), ("500", Code::WorkFailed)] {
            assert!(responses[status]["description"].as_str().unwrap().contains(code.as_str()), "{status}: {code:?}");
        }
        assert!(responses["409"]["headers"].get("Retry-After").is_some());
        assert!(responses["400"]["headers"].get("Retry-After").is_none());
        // A service that answers a request in progress with 202 says so; a 202 of another's own is left alone.
        assert_eq!(responses.get("202").is_some(), path == "/search");
    }
    let accepted = &document["paths"]["/search"]["post"]["responses"]["202"];
    assert!(accepted["description"].as_str().unwrap().contains(Code::InProgress.as_str()));
    assert!(accepted["headers"].get("Retry-After").is_some());
    let declined = &document["paths"]["/payments"]["post"]["responses"]["402"]["headers"];
    assert!(declined.get("Idempotency-Replayed").is_some() && declined.get("Idempotency-Expires").is_some());
    let paid = &document["paths"]["/payments"]["post"]["responses"]["201"]["headers"];
    assert!(paid.get("Idempotency-Replayed").is_some() && paid.get("Idempotency-Expires").is_some());
    assert!(!document["paths"]["/payments/{id}"].to_string().contains("Idempotency"));
}

#[tokio::test]
async fn a_problem_has_the_members_of_the_schema_and_no_others() {
    let document = document();
    let refused = &document["paths"]["/payments"]["post"]["responses"]["400"];
    let schema = &refused["content"]["application/problem+json"]["schema"];
    assert_eq!(schema, &serde_json::to_value(ProblemDocument::schema()).unwrap());
    let server = Server::start(pay(idem(MemoryStore::new()).build().unwrap(), async |_, claim: idem_axum::Claim| {
        claim.makes("payment", "1").await;
        Ok(StatusCode::CREATED)
    }))
    .await;
    server.pay("k").await;
    let mismatch = server.post("/pay", "k", json!({ "account": "acc_1", "cents": 1 })).await.json();
    let missing = server.send(server.request("/pay")).await.json();
    for problem in [&mismatch, &missing] {
        fits(problem, schema);
    }
    assert!(mismatch.get("original").is_some_and(|original| original.get("resource").is_some()));
}

/// As far as these schemas go: members, required ones, types and enumerations.
fn fits(value: &Value, schema: &Value) {
    let kind = match value {
        Value::Object(members) => {
            for (name, member) in members {
                fits(member, schema["properties"].get(name).unwrap_or_else(|| panic!("{name} is not described")));
            }
            for needed in schema["required"].as_array().unwrap() {
                assert!(members.contains_key(needed.as_str().unwrap()), "{needed} is missing");
            }
            "object"
        }
        Value::String(_) => "string",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        other => panic!("{other} is in no problem"),
    };
    assert_eq!(schema["type"], kind, "{value}");
    if let Some(choice) = schema.get("enum") {
        assert!(choice.as_array().unwrap().contains(value), "{value} is none of {choice}");
    }
}

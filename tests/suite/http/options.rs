//! What the builder's options change in the answers.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use idem_axum::{CallClass, Claim, Failure, Fate, IntoReply, MemoryStore, Profile, Reply, Unwritable};
use idem_core::StatusName;
use serde_json::{Value, json};

use crate::http::bench::{Effects, LateClock, ProviderFailed, Server, idem, pay, payment, record, route};
use crate::http::command::{Pay, Refund};
use crate::support::log::Log;

fn other() -> Value {
    json!({ "account": "acc_1", "cents": 999 })
}

#[tokio::test]
async fn the_drafts_profile_answers_a_mismatch_with_422_and_the_same_document() {
    let mut documents = Vec::new();
    for (profile, status) in [(Profile::Idem, 409), (Profile::Ietf, 422)] {
        let idem = idem(MemoryStore::new()).profile(profile).build().unwrap();
        let server = Server::start(pay(idem, async |_, _| Ok(StatusCode::CREATED))).await;
        server.pay("k").await;
        let answer = server.post("/pay", "k", other()).await;
        assert_eq!((answer.status, &answer.json()["status"]), (status, &json!(status)));
        assert_eq!(answer.header("retry-after"), None);
        let mut document = answer.json();
        document["status"].take();
        document["original"]["created_at"].take();
        documents.push(document);
    }
    assert_eq!(documents[0], documents[1]);
    assert_eq!(documents[0]["code"], "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST");
}

#[tokio::test]
async fn by_option_a_running_request_is_accepted_with_202_and_a_mismatch_is_not() {
    let idem = idem(MemoryStore::new()).in_progress_is_accepted().build().unwrap();
    let begun = Effects::default();
    let beginning = begun.clone();
    let work = move |_, _| {
        beginning.happen();
        std::future::pending::<Result<(), Failure>>()
    };
    let server = Server::start(pay(idem, work)).await;
    let _first = server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
    begun.reach(1).await;
    let answer = server.pay("k").await;
    assert_eq!((answer.status, answer.code()), (202, "IDEMPOTENCY_REQUEST_IN_PROGRESS".to_owned()));
    assert_eq!((&answer.json()["status"], &answer.json()["next"]), (&json!(202), &json!("wait")));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.post("/pay", "k", other()).await.status, 409);
}

#[tokio::test]
async fn by_option_a_403_is_final_except_with_a_call_left_open() {
    for (is_final, class, state) in [
        (false, None, StatusName::FailedRetryable),
        (true, None, StatusName::FailedReplayable),
        (true, Some(CallClass::Neither), StatusName::Unknown),
        (true, Some(CallClass::Dedupes { retention: Duration::from_secs(3600) }), StatusName::FailedRetryable),
    ] {
        let store = MemoryStore::new();
        let builder = idem(store.clone()).call::<Pay>("charge", class.unwrap_or(CallClass::Neither));
        let builder = if is_final { builder.forbidden_is_final() } else { builder };
        let work = move |_, claim: Claim| async move {
            if class.is_some() {
                // Left open: nobody learns how it ended.
                drop(claim.open("charge").await?);
            }
            Ok((StatusCode::FORBIDDEN, "not allowed"))
        };
        let server = Server::start(pay(builder.build().unwrap(), work)).await;
        assert_eq!(server.pay("k").await.status, 403);
        assert_eq!(record(&store, "k").unwrap().status.name(), state, "{is_final} {class:?}");
    }
}

#[tokio::test]
async fn the_type_of_a_problem_is_an_address_where_one_is_given() {
    let idem = idem(MemoryStore::new())
        .problem_types("https://api.example.com/problems#")
        .call::<Pay>("charge", CallClass::Neither)
        .build()
        .unwrap();
    let work = async |_, claim: Claim| {
        claim.call("charge", async |_| Err::<(), _>(ProviderFailed(Fate::Refused))).await?;
        Ok(())
    };
    let server = Server::start(pay(idem, work)).await;
    let base = "https://api.example.com/problems#";
    // Of the extractor, of the record, and of the work, which is stored.
    assert_eq!(server.pay("a b").await.json()["type"], format!("{base}IDEMPOTENCY_KEY_INVALID"));
    assert_eq!(server.pay("k").await.json()["type"], format!("{base}IDEMPOTENCY_CALL_REFUSED"));
    let mismatch = server.post("/pay", "k", other()).await;
    assert_eq!(mismatch.json()["type"], format!("{base}IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST"));
}

#[tokio::test]
async fn an_operation_may_have_limits_of_its_own_whatever_the_order() {
    let clock = LateClock::default();
    let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
    let hour = Duration::from_secs(3600);
    let idem = idem(store)
        .operation::<Refund>(|refund| refund.body_cap(3).window(hour))
        .body_cap(4)
        .window(2 * hour)
        .build()
        .unwrap();
    let refunds = route::<Refund, Json<Refund>, _, _, _>("/refunds", async |_, _| Ok("four"));
    let server = Server::start(pay(idem.clone(), async |_, _| Ok("four")).merge(refunds.with_state(idem))).await;
    for (path, second, later) in
        [("/pay", "", ""), ("/refunds", "IDEMPOTENCY_RESPONSE_NOT_KEPT", "IDEMPOTENCY_KEY_EXPIRED")]
    {
        assert_eq!(server.post(path, path, payment()).await.body, b"four");
        assert_eq!(server.post(path, path, payment()).await.code(), second, "{path}");
        clock.pass(hour + hour / 2);
        assert_eq!(server.post(path, path, payment()).await.code(), later, "{path}");
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a refusal of the shop")]
struct ShopError(u16);

impl IntoReply for ShopError {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Reply::status(self.0).body("of the shop").into_reply()
    }
}

/// Another error of the application, which is no answer.
#[derive(Debug, thiserror::Error)]
#[error("a broken pipe")]
struct Plumbing;

#[tokio::test]
async fn a_registered_error_is_an_answer_by_its_status_and_another_is_logged_by_its_type() {
    let log = Log::start();
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let work = move |payment: Pay, _| {
        happening.happen();
        async move {
            match payment.cents {
                0 => Err(Plumbing)?,
                status => Err(ShopError(u16::try_from(status).unwrap()))?,
            }
            Ok(())
        }
    };
    let idem = idem(store.clone()).replies::<Never>().replies::<ShopError>().build().unwrap();
    let server = Server::start(pay(idem, work)).await;
    let send = async |key: &str, cents: u16| server.post("/pay", key, json!({ "account": "a", "cents": cents })).await;

    let (first, second) = (send("final", 409).await, send("final", 409).await);
    assert_eq!((first.status, first.body.as_slice(), first.replayed()), (409, &b"of the shop"[..], false));
    assert_eq!((second.status, second.body.as_slice(), second.replayed()), (409, &b"of the shop"[..], true));
    assert_eq!(effects.count(), 1);

    assert_eq!(send("again", 503).await.body, b"of the shop");
    assert_eq!(record(&store, "again").unwrap().status.name(), StatusName::FailedRetryable);
    // One that is no answer after all.
    assert_eq!(send("none", 1000).await.code(), "IDEMPOTENCY_WORK_FAILED");
    assert!(!log.text().contains("Plumbing"));
    assert_eq!(send("other", 0).await.code(), "IDEMPOTENCY_WORK_FAILED");
    assert!(log.text().contains("options::Plumbing"), "{}", log.text());
}

/// One that is registered and does not come.
#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

impl IntoReply for Never {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        unreachable!("no work gives it")
    }
}

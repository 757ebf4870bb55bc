//! One key for two commands, in every state that the first one's record can be in.

use std::time::Duration;

use axum::http::StatusCode;
use idem_axum::{CallClass, Claim, Failure, MemoryStore, Reply};
use idem_core::StatusName::{self, Completed, Expired, FailedReplayable, FailedRetryable, InProgress, Unknown};
use idem_core::retention::Sweep;
use serde_json::json;

use crate::http::bench::{Effects, LateClock, Server, idem, pay, payment, record};
use crate::http::command::Pay;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// How the first request is brought into a state.
struct Row {
    name: &'static str,
    work: Work,
    /// The call that the work leaves open.
    open: Option<CallClass>,
    /// How much later the second request comes, and whether a sweep was there before.
    later: Duration,
    swept: bool,
    state: StatusName,
    status: Option<u16>,
    safe_new_key: bool,
}

#[derive(Clone, Copy)]
enum Work {
    Pays,
    Refuses,
    RefusesForGood,
    Fails,
    Hangs,
}

fn rows() -> Vec<Row> {
    let row = |name, work, open, state, status, safe_new_key| Row {
        name,
        work,
        open,
        later: Duration::ZERO,
        swept: false,
        state,
        status,
        safe_new_key,
    };
    let dedupes = Some(CallClass::Dedupes { retention: HOUR });
    let neither = Some(CallClass::Neither);
    vec![
        row("running", Work::Hangs, None, InProgress, None, false),
        row("paid", Work::Pays, None, Completed, Some(201), false),
        row("refused", Work::Refuses, None, FailedReplayable, Some(402), true),
        row("refused with a call left open", Work::RefusesForGood, neither, FailedReplayable, Some(402), false),
        row("failed", Work::Fails, None, FailedRetryable, None, false),
        row("failed with a call left open", Work::Fails, dedupes, FailedRetryable, None, false),
        Row { later: 2 * HOUR, ..row("nobody can ask any more", Work::Fails, dedupes, FailedRetryable, None, false) },
        row("unknown", Work::Fails, neither, Unknown, None, false),
        Row { later: 25 * HOUR, ..row("over, and not swept", Work::Pays, None, Completed, Some(201), false) },
        Row { later: 25 * HOUR, swept: true, ..row("over", Work::Pays, None, Expired, None, false) },
    ]
}

#[tokio::test]
async fn another_command_under_the_key_is_told_so_in_every_state_of_the_record() {
    for row in rows() {
        let (clock, begun) = (LateClock::default(), Effects::default());
        let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
        let beginning = begun.clone();
        let (end, open) = (row.work, row.open);
        let work = move |_, claim: Claim| {
            beginning.happen();
            async move {
                claim.makes("payment", "1").await;
                if open.is_some() {
                    drop(claim.open("charge").await?);
                }
                match end {
                    Work::Pays => Ok(Reply::status(201)),
                    Work::Refuses => Ok(Reply::status(402)),
                    Work::RefusesForGood => Err(Failure::replayable(Reply::status(402))),
                    Work::Fails => Err(Failure::retryable("the ledger is away")),
                    Work::Hangs => std::future::pending().await,
                }
            }
        };
        let idem = idem(store.clone()).call::<Pay>("charge", open.unwrap_or(CallClass::Neither)).build().unwrap();
        let server = Server::start(pay(idem.clone(), work)).await;
        let first = server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
        begun.reach(1).await;
        if !matches!(end, Work::Hangs) {
            idem.drain(Duration::from_secs(30)).await.unwrap();
        }
        clock.pass(row.later);
        if row.swept {
            idem.engine().sweep(&Sweep::default()).await.unwrap();
        }
        let answer = server.post("/pay", "k", json!({ "account": "acc_1", "cents": 999 })).await;
        let name = row.name;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{name}: {answer:?}");
        assert_eq!(answer.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST", "{name}");
        assert_eq!(answer.header("retry-after"), None, "{name}");
        let problem = answer.json();
        assert_eq!(problem["next"], "look", "{name}");
        assert_eq!(problem["safe_new_key"], row.safe_new_key, "{name}");
        assert_eq!(problem["original"]["state"], row.state.as_str(), "{name}");
        assert_eq!(problem["original"]["status"].as_u64(), row.status.map(u64::from), "{name}");
        // A running one has written nothing yet.
        let resource = (row.state != InProgress).then(|| json!({ "type": "payment", "id": "1" }));
        assert_eq!(problem["original"].get("resource"), resource.as_ref(), "{name}");
        assert_eq!((begun.count(), record(&store, "k").unwrap().status.name()), (1, row.state), "{name}");
        drop(first);
    }
}

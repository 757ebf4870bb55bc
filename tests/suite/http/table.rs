//! What an answer becomes: the table of `docs/http.md`, row by row, without an open call and with one of each class.

use std::time::Duration;

use idem_axum::{CallClass, Claim, Failure, MemoryStore, Reply};
use idem_core::StatusName::{self, Completed, FailedReplayable, FailedRetryable, Unknown};

use crate::http::bench::{Answer, Effects, LateClock, Server, idem, pay, record};
use crate::http::command::Pay;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// How the work ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Status(u16),
    /// The same as the error of `?`, by the application's own conversion.
    ErrorReply(u16),
    Replayable(u16),
    Retryable,
    Unknown,
    Error,
    Panic,
}

impl End {
    fn happen(self) -> Result<Reply, Failure> {
        match self {
            Self::Status(status) => Ok(Reply::status(status)),
            Self::ErrorReply(status) => Err(Failure::reply(Reply::status(status))),
            Self::Replayable(status) => Err(Failure::replayable(Reply::status(status))),
            Self::Retryable => Err(Failure::retryable("away")),
            Self::Unknown => Err(Failure::unknown("lost")),
            Self::Error => Err(std::io::Error::other("broken"))?,
            Self::Panic => panic!("as asked"),
        }
    }

    /// The status of the work's own answer, if it gives one.
    fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::ErrorReply(status) | Self::Replayable(status) => Some(status),
            Self::Retryable | Self::Unknown | Self::Error | Self::Panic => None,
        }
    }
}

/// No open call; one that dedupes; one that can be asked; one that can do neither.
const OPEN: [Option<CallClass>; 4] = [
    None,
    Some(CallClass::Dedupes { retention: HOUR }),
    Some(CallClass::QueryOnly { quiescence: HOUR }),
    Some(CallClass::Neither),
];

const KEPT: [StatusName; 4] = [Completed; 4];
const REFUSED: [StatusName; 4] = [FailedReplayable; 4];
const FAILED: [StatusName; 4] = [FailedRetryable, FailedRetryable, Unknown, Unknown];
const FINAL: [StatusName; 4] = [FailedReplayable, FailedRetryable, Unknown, Unknown];

/// The table.
fn rows() -> Vec<(End, [StatusName; 4])> {
    let each = |statuses: &[u16], states: [StatusName; 4]| {
        let both = |&status: &u16| [(End::Status(status), states), (End::ErrorReply(status), states)];
        statuses.iter().flat_map(both).collect::<Vec<_>>()
    };
    let mut rows = each(&[200, 201, 202, 204, 299, 303, 308], KEPT);
    rows.extend([
        (End::Replayable(409), REFUSED),
        (End::Replayable(503), REFUSED),
        (End::Retryable, FAILED),
        (End::Unknown, [Unknown; 4]),
    ]);
    rows.extend(each(&[401, 403, 407, 408, 425, 429, 500, 502, 503, 504, 599], FAILED));
    rows.extend([(End::Error, FAILED), (End::Panic, FAILED)]);
    rows.extend(each(&[400, 402, 404, 406, 409, 410, 422, 451, 499], FINAL));
    rows
}

#[tokio::test]
async fn every_end_becomes_what_the_table_says_with_and_without_an_open_call_of_each_class() {
    for (end, states) in rows() {
        for (class, state) in OPEN.into_iter().zip(states) {
            let row = format!("{end:?} with {class:?}");
            let (clock, effects) = (LateClock::default(), Effects::default());
            let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
            let happening = effects.clone();
            let work = move |_, claim: Claim| {
                happening.happen();
                async move {
                    if class.is_some() {
                        // Left open: nobody learns how it ended.
                        drop(claim.open("charge").await?);
                    }
                    end.happen()
                }
            };
            let builder = idem(store.clone()).call::<Pay>("charge", class.unwrap_or(CallClass::Neither));
            let server = Server::start(pay(builder.build().unwrap(), work)).await;
            let first = server.pay("k").await;
            assert_eq!(record(&store, "k").unwrap().status.name(), state, "{row}");
            given_first(end, state, &first, &row);
            clock.pass(Duration::from_secs(90));
            given_next(end, state, &server.pay("k").await, effects.count(), &row);
        }
    }
}

/// The work's own answer, or a problem that says what to do; never a bare 500.
fn given_first(end: End, state: StatusName, first: &Answer, row: &str) {
    assert!(!first.replayed(), "{row}");
    match (end.status(), state) {
        (Some(status), _) => assert_eq!((first.status, first.code()), (status, String::new()), "{row}"),
        (None, Unknown) => {
            assert_eq!((first.status, first.code().as_str()), (503, "IDEMPOTENCY_OUTCOME_UNKNOWN"), "{row}")
        }
        (None, _) => assert_eq!((first.status, first.code().as_str()), (503, "IDEMPOTENCY_WORK_FAILED"), "{row}"),
    }
}

fn given_next(end: End, state: StatusName, next: &Answer, runs: usize, row: &str) {
    match state {
        Completed | FailedReplayable => {
            assert_eq!((Some(next.status), next.replayed(), runs), (end.status(), true, 1), "{row}");
        }
        FailedRetryable => assert_eq!((next.replayed(), runs), (false, 2), "{row}"),
        _ => assert_eq!((next.status, next.code().as_str(), runs), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN", 1), "{row}"),
    }
}

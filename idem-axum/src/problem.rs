//! Where everything that is not the work's own answer becomes HTTP: one table of codes, one problem document.

mod document;

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, LOCATION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use idem_core::{Answer, Original, Outcome, Reply, ResourceRef, StoreError};

use crate::reply;

/// What the client does now, as the member `next` of a problem says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Next {
    /// Wait for `Retry-After`, then send the same request with the same key: it gets the answer.
    Wait,
    /// Send the same request with the same key, after `Retry-After`: it runs.
    SameKey,
    /// Look at the resource, then decide.
    Look,
    /// Ask a person.
    Ask,
    /// Correct the request.
    Fix,
    /// Nothing: the service is set up wrongly.
    Nothing,
}

impl Next {
    /// The text in the problem; `None` where the client can do nothing.
    #[must_use]
    pub fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Wait => "wait",
            Self::SameKey => "same_key",
            Self::Look => "look",
            Self::Ask => "ask",
            Self::Fix => "fix",
            Self::Nothing => return None,
        })
    }
}

/// The table: what each code is called, its status, what the client does, and its title.
macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident = $code:literal, $status:literal, $next:ident, $title:literal;)+) => {
        /// The stable name of a refusal, the member `code` of every problem.
        ///
        /// ```
        /// use idem_axum::{Code, Next};
        ///
        /// assert_eq!(Code::InProgress.as_str(), "IDEMPOTENCY_REQUEST_IN_PROGRESS");
        /// assert_eq!((Code::InProgress.status(), Code::InProgress.next()), (409, Next::Wait));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            const fn row(self) -> (&'static str, u16, Next, &'static str) {
                match self {
                    $(Self::$variant => ($code, $status, Next::$next, $title),)+
                }
            }
        }
    };
}

codes! {
    /// The request has no `Idempotency-Key`.
    KeyMissing = "IDEMPOTENCY_KEY_MISSING", 400, Fix, "The Idempotency-Key header is missing";
    /// The header is there and is no key, or is there twice. It is never taken for "no key".
    KeyInvalid = "IDEMPOTENCY_KEY_INVALID", 400, Fix, "The Idempotency-Key header is not a key";
    /// The request does not read; the status is that of axum's own extractor.
    RequestInvalid = "IDEMPOTENCY_REQUEST_INVALID", 400, Fix, "The request cannot be read";
    /// The key belongs to another command.
    KeyReused = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST", 409, Look,
        "The key was used for a different request";
    /// The first request still runs.
    InProgress = "IDEMPOTENCY_REQUEST_IN_PROGRESS", 409, Wait, "The first request still runs";
    /// Nobody knows yet how the first request ended. 409; 503 to the client whose own work ended so.
    OutcomeUnknown = "IDEMPOTENCY_OUTCOME_UNKNOWN", 409, Wait, "The outcome is not known yet";
    /// Nobody knows how the first request ended, and only a person can find out.
    OutcomeUnresolved = "IDEMPOTENCY_OUTCOME_UNRESOLVED", 409, Ask, "The outcome has to be found out by a person";
    /// It is done, and its answer was not kept.
    ResponseNotKept = "IDEMPOTENCY_RESPONSE_NOT_KEPT", 409, Look, "The request is done; its answer was not kept";
    /// The replay window is over.
    KeyExpired = "IDEMPOTENCY_KEY_EXPIRED", 410, Look, "The key's time is over";
    /// A newer release wrote the record, in a rolling deploy for instance.
    ContractUnknown = "IDEMPOTENCY_CONTRACT_UNKNOWN", 503, Wait, "The key was used with a newer release";
    /// A release wrote the record whose contract is not kept any more.
    ContractRetired = "IDEMPOTENCY_CONTRACT_RETIRED", 409, Look, "The key was used with a release that is gone";
    /// The store did not answer, so nothing ran.
    StoreUnavailable = "IDEMPOTENCY_STORE_UNAVAILABLE", 503, SameKey, "Nothing ran: the request could not be recorded";
    /// The first request failed and may be retried, not yet.
    RetryLater = "IDEMPOTENCY_RETRY_LATER", 503, SameKey, "The request failed and may be retried later";
    /// The work failed without an answer of its own; to the client whose work it was.
    WorkFailed = "IDEMPOTENCY_WORK_FAILED", 503, SameKey, "The request failed and may be retried";
    /// The work ended, and how could not be stored yet.
    OutcomeNotStored = "IDEMPOTENCY_OUTCOME_NOT_STORED", 503, Wait, "The outcome could not be stored yet";
    /// Another service refused for good.
    CallRefused = "IDEMPOTENCY_CALL_REFUSED", 422, Fix, "The request was refused for good";
    /// The application named no tenant for the request.
    ScopeMissing = "IDEMPOTENCY_SCOPE_MISSING", 500, Nothing, "The service is set up wrongly";
}

impl Code {
    /// The text in the problem; it does not change.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The status that it usually goes out with.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// What the client does now.
    #[must_use]
    pub const fn next(self) -> Next {
        self.row().2
    }

    /// One line for a person.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().3
    }
}

/// One refusal, on its way to be `application/problem+json` (RFC 9457).
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    status: StatusCode,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
    resource: Option<ResourceRef>,
    original: Option<Original>,
    headers: Vec<(http::HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        // The table's statuses are written out above; a test walks through all of them.
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let detail = detail.into();
        Self { code, status, detail, retry_after: None, resource: None, original: None, headers: Vec::new() }
    }

    /// The same problem with another status than the table's.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    fn resource(self, resource: Option<ResourceRef>) -> Self {
        Self { resource, ..self }
    }

    fn header(mut self, name: http::HeaderName, value: Option<HeaderValue>) -> Self {
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    /// The same document as an answer of the work, to be kept.
    pub(crate) fn into_reply(self) -> Reply {
        Reply::status(self.status.as_u16())
            .header("content-type", PROBLEM_JSON)
            .header("cache-control", "no-store")
            .body(document::json(&self))
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(document::json(&self)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.retry_after.map(|wait| (RETRY_AFTER, seconds(wait))));
        headers.extend(self.headers);
        response
    }
}

/// What the client gets whose request came to this.
pub(crate) fn outcome(outcome: Outcome) -> Response {
    match outcome {
        Outcome::Done { reply, expires_at } => reply::first(reply, expires_at),
        Outcome::Failed { reply: Some(reply), retry_after } | Outcome::Unknown { reply: Some(reply), retry_after } => {
            reply::failed(reply, retry_after)
        }
        Outcome::Failed { reply: None, retry_after } => {
            let detail = "The work failed before it had an answer. Send the same request with the same key again.";
            Problem::new(Code::WorkFailed, detail).retry_after(retry_after).into_response()
        }
        Outcome::Unknown { reply: None, retry_after } => {
            let detail = "The work failed, and what it did outside is being found out. Ask again with the same key.";
            let problem = Problem::new(Code::OutcomeUnknown, detail).retry_after(retry_after);
            problem.with_status(StatusCode::SERVICE_UNAVAILABLE).into_response()
        }
        Outcome::NotStored { retry_after } => not_stored(retry_after),
        Outcome::Second(answer) => second(answer),
        // An outcome of a newer core than this crate was written for.
        _ => not_stored(MOMENT),
    }
}

/// The work ended, or may have, and its outcome is not in the store yet.
pub(crate) fn not_stored(retry_after: Duration) -> Response {
    let detail = "The work ended, but its outcome could not be stored yet. Ask again with the same key.";
    Problem::new(Code::OutcomeNotStored, detail).retry_after(retry_after).into_response()
}

/// The answer is kept, and is none that HTTP can carry.
pub(crate) fn unwritable() -> Response {
    let detail = "The request is done, and its answer cannot be written. Look at what it made.";
    Problem::new(Code::ResponseNotKept, detail).into_response()
}

/// The claim failed: nothing ran.
pub(crate) fn store_failed(error: &StoreError) -> Response {
    tracing::error!(code = error.code(), error = error as &dyn std::error::Error, "the claim failed, so nothing ran");
    let detail = "Nothing was done. Send the same request with the same key again.";
    Problem::new(Code::StoreUnavailable, detail).retry_after(MOMENT).into_response()
}

/// What a request gets whose key had a record.
fn second(answer: Answer) -> Response {
    let problem = match answer {
        Answer::Replay { response, expires_at } => return reply::replay(response, expires_at),
        Answer::NotKept { response, resource } => {
            let location = response.header("location").and_then(|value| HeaderValue::from_bytes(value).ok());
            Problem::new(
                Code::ResponseNotKept,
                "The first request with this key is done. Look at what it made; do not send it again.",
            )
            .resource(resource)
            .header(LOCATION, location)
        }
        Answer::Mismatch(original) => mismatch(original),
        Answer::InProgress { retry_after } => Problem::new(
            Code::InProgress,
            "The first request with this key has not ended. Ask again with the same key.",
        )
        .retry_after(retry_after),
        Answer::RetryLater { retry_after } => Problem::new(
            Code::RetryLater,
            "The last attempt failed. Send the same request with the same key again, not earlier than told.",
        )
        .retry_after(retry_after),
        Answer::OutcomeUnknown { retry_after } => Problem::new(
            Code::OutcomeUnknown,
            "How the first request with this key ended is being found out. Ask again with the same key.",
        )
        .retry_after(retry_after),
        Answer::Unresolved { resource } => Problem::new(
            Code::OutcomeUnresolved,
            "How the first request with this key ended cannot be found out without a person. Do not send it again.",
        )
        .resource(resource),
        Answer::Expired { resource } => Problem::new(
            Code::KeyExpired,
            "The key was used before, and its answer is not kept any more. Look at what the first request made.",
        )
        .resource(resource),
        Answer::ContractUnknown { retry_after } => Problem::new(
            Code::ContractUnknown,
            "A newer release of the service knows the answer. Ask again with the same key.",
        )
        .retry_after(retry_after),
        Answer::ContractRetired { resource } => Problem::new(
            Code::ContractRetired,
            "The key was used with a release that this one cannot compare with. Look at what the first request made.",
        )
        .resource(resource),
        // An answer of a newer core than this crate was written for; waiting is what duplicates nothing.
        _ => Problem::new(Code::OutcomeUnknown, "Ask again with the same key.").retry_after(MOMENT),
    };
    problem.into_response()
}

fn mismatch(original: Original) -> Problem {
    let detail = if original.safe_new_key {
        "The key was used for a different request, which failed for good. Send this one with a new key."
    } else {
        "The key was used for a different request. Look at what became of it before this one is sent with a new key."
    };
    // A location with a `>` would break out of the link.
    let location = original.location.as_deref().filter(|location| !location.contains(&b'>'));
    let link =
        location.and_then(|location| HeaderValue::from_bytes(&[b"<", location, b">; rel=\"related\""].concat()).ok());
    Problem { original: Some(original), ..Problem::new(Code::KeyReused, detail) }.header(LINK, link)
}

/// `Retry-After` in whole seconds; rounded up, since a client that comes too early is sent away again.
pub(crate) fn seconds(wait: Duration) -> HeaderValue {
    HeaderValue::from(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1))
}

const PROBLEM_JSON: &str = "application/problem+json";

/// The wait where nothing says how long: `Retry-After` counts whole seconds.
const MOMENT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up_to_whole_seconds_and_never_none() {
        for (wait, text) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (59_999, "60")] {
            assert_eq!(seconds(Duration::from_millis(wait)), text, "{wait} ms");
        }
    }

    #[test]
    fn every_status_of_the_table_is_one() {
        for code in Code::ALL {
            assert_eq!(Problem::new(*code, "").status.as_u16(), code.status(), "{code:?}");
        }
    }
}

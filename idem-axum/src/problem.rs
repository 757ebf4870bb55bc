//! Where everything that is not the work's own answer becomes HTTP: one problem document.

mod document;

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use idem_core::{Original, Reply, ResourceRef};

use crate::code::{Code, Next};

/// What the builder's options say of refusals.
#[derive(Debug, Clone)]
pub(crate) struct Wording {
    /// The status of a key that belongs to another command.
    pub(crate) mismatch: StatusCode,
    /// The status while the first request runs.
    pub(crate) in_progress: StatusCode,
    /// What a problem's `type` begins with; the code follows.
    pub(crate) types: Cow<'static, str>,
}

impl Default for Wording {
    fn default() -> Self {
        Self {
            mismatch: StatusCode::CONFLICT,
            in_progress: StatusCode::CONFLICT,
            types: Cow::Borrowed("urn:idem:problem:"),
        }
    }
}

/// One refusal, on its way to be `application/problem+json` (RFC 9457).
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    status: StatusCode,
    next: Next,
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
        let next = code.next();
        Self { code, status, next, detail, retry_after: None, resource: None, original: None, headers: Vec::new() }
    }

    /// The same problem with another status than the table's.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The same problem with another advice than the table's.
    pub(crate) fn next(self, next: Next) -> Self {
        Self { next, ..self }
    }

    pub(crate) fn resource(self, resource: Option<ResourceRef>) -> Self {
        Self { resource, ..self }
    }

    pub(crate) fn original(self, original: Original) -> Self {
        Self { original: Some(original), ..self }
    }

    pub(crate) fn header(mut self, name: http::HeaderName, value: Option<HeaderValue>) -> Self {
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    /// The same document as an answer of the work, to be kept.
    pub(crate) fn into_reply(self, wording: &Wording) -> Reply {
        Reply::status(self.status.as_u16())
            .header("content-type", PROBLEM_JSON)
            .header("cache-control", "no-store")
            .body(document::json(&self, &wording.types))
    }

    pub(crate) fn into_response(self, wording: &Wording) -> Response {
        let mut response = Response::new(Body::from(document::json(&self, &wording.types)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.retry_after.map(|wait| (RETRY_AFTER, seconds(wait))));
        headers.extend(self.headers);
        response
    }
}

const PROBLEM_JSON: &str = "application/problem+json";

/// `Retry-After` in whole seconds; rounded up, since a client that comes too early is sent away again.
pub(crate) fn seconds(wait: Duration) -> HeaderValue {
    HeaderValue::from(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1))
}

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

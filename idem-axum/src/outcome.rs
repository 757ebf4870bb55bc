//! What each outcome of the engine is to the client: an answer of the work, or a problem.

use std::time::Duration;

use axum::response::Response;
use http::header::{LINK, LOCATION};
use http::{HeaderValue, StatusCode};
use idem_core::{Answer, Original, Outcome, Reply, ResourceRef, StoreError};

use crate::code::Code;
use crate::problem::{Problem, Wording};
use crate::reply;

/// What the client gets whose request came to this.
pub(crate) fn response(outcome: Outcome, wording: &Wording) -> Response {
    match outcome {
        Outcome::Done { reply, expires_at } => reply::first(reply, expires_at, wording),
        Outcome::Failed { reply: Some(reply), retry_after } | Outcome::Unknown { reply: Some(reply), retry_after } => {
            reply::failed(reply, retry_after, wording)
        }
        Outcome::Failed { reply: None, retry_after } => {
            let detail = "The work failed before it had an answer. Send the same request with the same key again.";
            Problem::new(Code::WorkFailed, detail).retry_after(retry_after).into_response(wording)
        }
        Outcome::Unknown { reply: None, retry_after } => {
            let detail = "The work failed, and what it did outside is not known yet. Ask again with the same key.";
            let problem = Problem::new(Code::OutcomeUnknown, detail).retry_after(retry_after);
            problem.with_status(StatusCode::SERVICE_UNAVAILABLE).into_response(wording)
        }
        Outcome::NotStored { retry_after } => not_stored(retry_after, wording),
        Outcome::Second(answer) => second(answer, wording),
        // An outcome of a newer core than this crate was written for.
        _ => not_stored(MOMENT, wording),
    }
}

/// What the client gets who sent no key: nothing was kept, so nothing can be promised.
pub(crate) fn without_a_key(outcome: Outcome, wording: &Wording) -> Response {
    match outcome {
        Outcome::Done { reply, .. }
        | Outcome::Failed { reply: Some(reply), .. }
        | Outcome::Unknown { reply: Some(reply), .. } => reply::plain(reply, wording),
        // Not 503 and no `Retry-After`: clients send such a request again by themselves, and nothing protects it.
        _ => {
            let detail = "The work failed, and without a key nothing was kept of it. Look at what it may have made.";
            let problem = Problem::new(Code::WorkFailed, detail).next(crate::code::Next::Look);
            problem.with_status(StatusCode::INTERNAL_SERVER_ERROR).into_response(wording)
        }
    }
}

/// The work ended, or may have, and its outcome is not in the store yet.
pub(crate) fn not_stored(retry_after: Duration, wording: &Wording) -> Response {
    let detail = "The work ended, but its outcome could not be stored yet. Ask again with the same key.";
    Problem::new(Code::OutcomeNotStored, detail).retry_after(retry_after).into_response(wording)
}

/// The answer is kept, and is none that HTTP can carry.
pub(crate) fn unwritable(wording: &Wording) -> Response {
    let detail = "The request is done, and its answer cannot be written. Look at what it made.";
    Problem::new(Code::ResponseNotKept, detail).into_response(wording)
}

/// The claim failed: nothing ran.
pub(crate) fn store_failed(error: &StoreError, wording: &Wording) -> Response {
    tracing::error!(code = error.code(), error = error as &dyn std::error::Error, "the claim failed, so nothing ran");
    let detail = "Nothing was done. Send the same request with the same key again.";
    Problem::new(Code::StoreUnavailable, detail).retry_after(MOMENT).into_response(wording)
}

/// The handler and what idem was set up with do not fit: nothing ran, and sending it again would not help.
pub(crate) fn setup_wrong(error: &(dyn std::error::Error + 'static), wording: &Wording) -> Response {
    tracing::error!(code = Code::SetupWrong.as_str(), error, "the set-up is wrong, so nothing ran");
    Problem::new(Code::SetupWrong, "Nothing was done. The service's operator has to mend it.").into_response(wording)
}

/// So much runs already that this request did not begin.
pub(crate) fn overloaded(wording: &Wording) -> Response {
    let detail = "Nothing was done: the service is busy. Send the same request with the same key again.";
    Problem::new(Code::Overloaded, detail).retry_after(MOMENT).into_response(wording)
}

/// The request is done, and its answer, which is written anew each time, could not be written just now.
pub(crate) fn not_rendered(wording: &Wording) -> Response {
    let detail = "The request is done, but its answer could not be written now. Ask again with the same key.";
    Problem::new(Code::ResponseNotRendered, detail).retry_after(MOMENT).into_response(wording)
}

/// The request is done, and its answer is gone.
pub(crate) fn not_kept(resource: Option<ResourceRef>, location: Option<HeaderValue>, wording: &Wording) -> Response {
    let detail = "The first request with this key is done. Look at what it made; do not send it again.";
    Problem::new(Code::ResponseNotKept, detail).resource(resource).header(LOCATION, location).into_response(wording)
}

/// What a request gets whose key had a record.
fn second(answer: Answer, wording: &Wording) -> Response {
    let problem = match answer {
        Answer::Replay { response, expires_at } => return reply::replay(response.into(), expires_at, wording),
        Answer::NotKept { response, resource, .. } => {
            let location = response.header("location").and_then(|value| HeaderValue::from_bytes(value).ok());
            return not_kept(resource, location, wording);
        }
        Answer::Mismatch(original) => mismatch(original).with_status(wording.mismatch),
        Answer::InProgress { retry_after } => Problem::new(
            Code::InProgress,
            "The first request with this key has not ended. Ask again with the same key.",
        )
        .with_status(wording.in_progress)
        .retry_after(retry_after),
        Answer::RetryLater { retry_after } => Problem::new(
            Code::RetryLater,
            "The last attempt failed. Send the same request with the same key again, not earlier than told.",
        )
        .retry_after(retry_after),
        Answer::OutcomeUnknown { retry_after } => Problem::new(
            Code::OutcomeUnknown,
            "How the first request with this key ended is not known yet. Ask again with the same key.",
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
    problem.into_response(wording)
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
    Problem::new(Code::KeyReused, detail).original(original).header(LINK, link)
}

/// The reply of a call that was refused for good by an error without one, kept as every final refusal is.
pub(crate) fn call_refused(wording: &Wording) -> Reply {
    let detail = "Another service refused the request for good. Sending it again changes nothing.";
    Problem::new(Code::CallRefused, detail).into_reply(wording)
}

/// The wait where nothing says how long: `Retry-After` counts whole seconds.
const MOMENT: Duration = Duration::from_secs(1);

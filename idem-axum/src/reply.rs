//! What the work may answer, [`IntoReply`], and how an answer goes out: first, again, or of a failed run.

use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::response::{AppendHeaders, Html, IntoResponse, IntoResponseParts, NoContent, Redirect, Response};
use axum::{Form, Json};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONNECTION, CONTENT_LENGTH, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use idem_core::{Reply, StoredResponse};
use serde::Serialize;

use crate::problem::{self, seconds};

/// An answer that can be kept, and given again byte for byte: narrower than axum's `IntoResponse`, since a stream
/// can be read only once.
///
/// Given for status codes, texts, bytes, [`Json`], [`Form`], [`Html`], redirects, and for tuples as axum has them: a
/// status, then up to four header parts, then the body; or headers, then the body.
///
/// ```
/// use axum::Json;
/// use axum::http::{StatusCode, header};
/// use idem_axum::IntoReply;
///
/// let reply = (StatusCode::CREATED, [(header::LOCATION, "/payments/pay_1")], Json([1, 2])).into_reply()?;
/// assert_eq!((reply.status, reply.body.as_slice()), (201, &b"[1,2]"[..]));
/// assert_eq!(reply.headers, [
///     ("content-type".to_owned(), b"application/json".to_vec()),
///     ("location".to_owned(), b"/payments/pay_1".to_vec()),
/// ]);
/// # Ok::<(), idem_axum::Unwritable>(())
/// ```
///
/// A streaming body does not compile:
///
/// ```compile_fail,E0277
/// use idem_axum::IntoReply;
///
/// let reply = axum::body::Body::from("once").into_reply();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored and given again",
    label = "not an answer that idem can keep",
    note = "return `Json`, a text, bytes, a `StatusCode`, or a tuple of status, headers and one of these",
    note = "streaming bodies cannot be replayed; for a type of your own, implement `idem_axum::IntoReply`"
)]
pub trait IntoReply {
    /// The answer, whole.
    ///
    /// # Errors
    /// [`Unwritable`] for a value that is no answer: a map with keys that JSON does not have, an illegal header. The
    /// work has then failed without an answer.
    fn into_reply(self) -> Result<Reply, Unwritable>;
}

/// A value of the work that cannot be written as an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer of the work cannot be written")]
pub struct Unwritable {
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl Unwritable {
    /// Says why.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: source.into() }
    }
}

impl IntoReply for Reply {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        let final_status = StatusCode::from_u16(self.status).is_ok_and(|status| !status.is_informational());
        if !final_status {
            return Err(Unwritable::new(format!("{} is no status of an answer", self.status)));
        }
        match self.headers.iter().find(|(name, value)| header(name, value).is_none()) {
            Some((name, _)) => Err(Unwritable::new(format!("the header `{name}` is not a legal one"))),
            None => Ok(self),
        }
    }
}

impl IntoReply for Unwritable {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Err(self)
    }
}

impl<T: IntoReply, E: IntoReply> IntoReply for Result<T, E> {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        match self {
            Ok(reply) => reply.into_reply(),
            Err(reply) => reply.into_reply(),
        }
    }
}

impl IntoReply for () {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Ok(Reply::status(200))
    }
}

impl IntoReply for StatusCode {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Reply::status(self.as_u16()).into_reply()
    }
}

impl IntoReply for NoContent {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Ok(Reply::status(204))
    }
}

impl IntoReply for Redirect {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Reply::status(self.status_code().as_u16()).header("location", self.location()).into_reply()
    }
}

/// Bodies with the content type that axum gives them.
macro_rules! plain {
    ($type:literal: $($body:ty),+) => {
        $(impl IntoReply for $body {
            fn into_reply(self) -> Result<Reply, Unwritable> {
                Ok(Reply::status(200).header("content-type", $type).body(self))
            }
        })+
    };
}

plain!("text/plain; charset=utf-8": &'static str, String);
plain!("application/octet-stream": &'static [u8], Vec<u8>, Bytes);

impl IntoReply for Cow<'static, str> {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        self.into_owned().into_reply()
    }
}

impl<T: Serialize> IntoReply for Json<T> {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        let body = serde_json::to_vec(&self.0).map_err(Unwritable::new)?;
        Ok(Reply::status(200).header("content-type", "application/json").body(body))
    }
}

impl<T: Serialize> IntoReply for Form<T> {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        // axum's own writer has no other way out than a response, whose body is one chunk in memory.
        let (parts, body) = self.into_response().into_parts();
        match axum::body::to_bytes(body, usize::MAX).now_or_never() {
            Some(Ok(body)) if parts.status == StatusCode::OK => {
                Ok(Reply { headers: lines(&parts.headers), ..Reply::status(200).body(body) })
            }
            _ => Err(Unwritable::new("the value does not serialise as a form")),
        }
    }
}

impl<T: IntoReply> IntoReply for Html<T> {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        let mut reply = self.0.into_reply()?;
        reply.headers.retain(|(name, _)| name != "content-type");
        Ok(reply.header("content-type", "text/html; charset=utf-8"))
    }
}

impl<T: IntoReply> IntoReply for (StatusCode, T) {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        Reply { status: self.0.as_u16(), ..self.1.into_reply()? }.into_reply()
    }
}

/// Headers and a body. A header part of any type cannot be told from a `StatusCode` by the compiler, so these are
/// the usual ones; with a status in front, every part of axum's is taken.
macro_rules! with_headers {
    ($([$($param:tt)*] $parts:ty;)+) => {
        $(impl<$($param)*, T> IntoReply for ($parts, T)
        where
            $parts: IntoResponseParts,
            T: IntoReply,
        {
            fn into_reply(self) -> Result<Reply, Unwritable> {
                with_parts(self.0, self.1.into_reply()?)
            }
        })+
    };
}

with_headers! {
    [K, V, const N: usize] [(K, V); N];
    [I] AppendHeaders<I>;
}

impl<T: IntoReply> IntoReply for (HeaderMap, T) {
    fn into_reply(self) -> Result<Reply, Unwritable> {
        with_parts(self.0, self.1.into_reply()?)
    }
}

macro_rules! with_status_and_parts {
    ($($parts:ident),+) => {
        #[allow(non_snake_case)] // the type parameters' names serve as the variables'
        impl<$($parts,)+ T> IntoReply for (StatusCode, $($parts,)+ T)
        where
            $($parts: IntoResponseParts,)+
            T: IntoReply,
        {
            fn into_reply(self) -> Result<Reply, Unwritable> {
                let (status, $($parts,)+ body) = self;
                (status, with_parts(($($parts,)+), body.into_reply()?)?).into_reply()
            }
        }
    };
}

with_status_and_parts!(P1);
with_status_and_parts!(P1, P2);
with_status_and_parts!(P1, P2, P3);
with_status_and_parts!(P1, P2, P3, P4);

/// Lets axum's header parts work on the headers of a reply.
fn with_parts(parts: impl IntoResponseParts, reply: Reply) -> Result<Reply, Unwritable> {
    /// Only the response that the parts were given has it; the one that a failing part makes has not.
    #[derive(Clone)]
    struct Given;

    let mut given = Response::new(());
    given.extensions_mut().insert(Given);
    for (name, value) in reply.headers.iter().filter_map(|(name, value)| header(name, value)) {
        given.headers_mut().append(name, value);
    }
    let response = (parts, given.map(|()| Body::empty())).into_response();
    if response.extensions().get::<Given>().is_none() {
        return Err(Unwritable::new("a header of it is not a legal one"));
    }
    Ok(Reply { headers: lines(response.headers()), ..reply })
}

/// The answer to the client whose work it was: complete.
pub(crate) fn first(reply: Reply, expires_at: SystemTime) -> Response {
    let mut response = response(reply);
    response.headers_mut().insert(IDEMPOTENCY_EXPIRES, date(expires_at));
    response
}

/// The kept answer again.
pub(crate) fn replay(stored: StoredResponse, expires_at: SystemTime) -> Response {
    let mut response = response(stored.into());
    response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    response.headers_mut().insert(IDEMPOTENCY_EXPIRES, date(expires_at));
    response
}

/// The work's own answer of a run that may be retried or has to be found out: as it is, with the wait where its
/// status has one.
pub(crate) fn failed(reply: Reply, retry_after: Duration) -> Response {
    let mut response = response(reply);
    let waits = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if waits && !response.headers().contains_key(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, seconds(retry_after));
    }
    response
}

fn response(reply: Reply) -> Response {
    let Ok(status) = StatusCode::from_u16(reply.status) else {
        tracing::error!(status = reply.status, "an answer has a status that HTTP does not have");
        return problem::unwritable();
    };
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = status;
    for (name, value) in &reply.headers {
        match header(name, value) {
            // The connection's own: the server makes them, and a wrong length would cut the answer off.
            Some((name, _)) if FRAMING.contains(&name) => {}
            Some((name, value)) => drop(response.headers_mut().append(name, value)),
            None => tracing::error!(header = name, "a header of an answer is not legal, and is left out"),
        }
    }
    response
}

fn header(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
}

fn lines(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect()
}

fn date(time: SystemTime) -> HeaderValue {
    HeaderValue::from_str(&httpdate::fmt_http_date(time)).expect("an HTTP date is visible ASCII and blanks")
}

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const IDEMPOTENCY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
const FRAMING: [HeaderName; 8] = [
    CONNECTION,
    CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

//! What the work answers: a [`Reply`], or a [`Failure`] that says whether it may be tried again.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::decide::{Becomes, Ended};
use crate::record::StoredResponse;
use crate::rules::{Replay, Rules};

/// An answer of the work, in the terms of HTTP but without its types: a queue consumer answers in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status; what it says of success and blame decides what becomes of the record.
    pub status: u16,
    /// Header names in lower case, with their values' bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// An answer without headers and body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same answer with one header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// The same answer with that body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// What is kept of it in a record that ends so.
    #[must_use]
    pub(crate) fn kept(&self, end: Becomes, rules: &Rules, headers: &[String]) -> StoredResponse {
        match (end, rules.replay) {
            (Becomes::Completed, Replay::Rebuilt { schema_version }) => {
                StoredResponse::rebuilt(self.status, schema_version)
            }
            _ => self.stored(headers, rules.body_cap),
        }
    }

    /// The headers that `keep` names, and a body of at most `cap` bytes.
    ///
    /// A value with a line feed is no HTTP header, and would end a line of the stored form: it is left out, since
    /// an answer must not become unreadable after its effect.
    #[must_use]
    pub(crate) fn stored(&self, keep: &[String], cap: usize) -> StoredResponse {
        let kept = |(name, value): &&(String, Vec<u8>)| keep.contains(name) && !value.contains(&b'\n');
        StoredResponse {
            status: self.status,
            headers: self.headers.iter().filter(kept).cloned().collect(),
            body: (self.body.len() <= cap).then(|| self.body.clone()),
        }
    }
}

impl StoredResponse {
    /// What is kept of an answer that is written anew each time.
    fn rebuilt(status: u16, schema_version: u32) -> Self {
        Self {
            status,
            headers: vec![(RESPONSE_SCHEMA.to_owned(), schema_version.to_string().into_bytes())],
            body: None,
        }
    }

    /// The version of the form that the first answer had, where only that was kept ([`Replay::Rebuilt`]).
    #[must_use]
    pub fn schema_version(&self) -> Option<u32> {
        std::str::from_utf8(self.header(RESPONSE_SCHEMA)?).ok()?.parse().ok()
    }
}

/// Stands among the stored headers and is never sent; the builder refuses an application's own header of that name.
const RESPONSE_SCHEMA: &str = "idem-response-schema";

impl Reply {
    /// The answer of a refused call as its record keeps it.
    pub(crate) fn to_stored_bytes(&self) -> Vec<u8> {
        StoredResponse { status: self.status, headers: self.headers.clone(), body: Some(self.body.clone()) }.to_bytes()
    }

    /// The same of an answer that passes the filter of all kept ones.
    pub(crate) fn to_kept_bytes(&self, headers: &[String]) -> Vec<u8> {
        self.stored(headers, usize::MAX).to_bytes()
    }

    /// Reads it back; `None` for anything else.
    pub(crate) fn from_stored_bytes(bytes: &[u8]) -> Option<Self> {
        StoredResponse::from_bytes(bytes).map(Self::from)
    }
}

impl From<StoredResponse> for Reply {
    fn from(stored: StoredResponse) -> Self {
        Self { status: stored.status, headers: stored.headers, body: stored.body.unwrap_or_default() }
    }
}

/// How work ends without success. The error type of every piece of work.
///
/// `?` turns any error into an opaque one: no answer of its own, so the client gets a problem that says what to do,
/// and the record becomes retryable, or unknown where an open call forbids a re-run. An application's error type
/// that is an answer says so by its own `From<AppError> for Failure`, built with [`Failure::reply`].
pub struct Failure {
    kind: Kind,
    reply: Option<Reply>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn Error + Send + Sync>>,
    /// The name of the source's type, which the box has forgotten.
    source_type: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Opaque,
    Reply,
    Replayable,
    Retryable,
    Unknown,
    Refused,
}

impl Failure {
    /// An answer that is classified by its status, as a returned one is: 409 is kept and replayed, 503 may be
    /// tried again.
    #[must_use]
    pub fn reply(reply: Reply) -> Self {
        Self { reply: Some(reply), ..Self::of(Kind::Reply) }
    }

    /// A final refusal: kept, and replayed to every later request, whatever its status, and even with a call left open.
    #[must_use]
    pub fn replayable(reply: Reply) -> Self {
        Self { reply: Some(reply), ..Self::of(Kind::Replayable) }
    }

    /// It failed and may be tried again; an open call that must not be made twice makes it unknown all the same.
    #[must_use]
    pub fn retryable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..Self::of(Kind::Retryable) }
    }

    /// Nobody knows whether the effect happened: it is not run again, recovery finds out.
    #[must_use]
    pub fn unknown(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..Self::of(Kind::Unknown) }
    }

    /// A call that was refused for good.
    pub(crate) fn refused(reply: Reply) -> Self {
        Self { reply: Some(reply), ..Self::of(Kind::Refused) }
    }

    /// The same failure, with an answer for the client whose work it was. It is not kept unless the failure is final.
    #[must_use]
    pub fn answering(mut self, reply: Reply) -> Self {
        self.reply = Some(reply);
        self
    }

    /// The same failure, not to be tried again before that long.
    #[must_use]
    pub fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
        self
    }

    /// Hands an error that came through `?` to whoever may know an answer for it. An answer makes it the same failure
    /// as [`Failure::reply`] does; an error that is handed back stays opaque. Every other failure stays as it is.
    #[must_use]
    pub fn answered_by(
        mut self,
        answer: impl FnOnce(Box<dyn Error + Send + Sync>) -> Result<Reply, Box<dyn Error + Send + Sync>>,
    ) -> Self {
        if self.kind == Kind::Opaque && self.reply.is_none() {
            match self.source.take().map(answer) {
                Some(Ok(reply)) => (self.kind, self.reply) = (Kind::Reply, Some(reply)),
                Some(Err(unknown)) => self.source = Some(unknown),
                None => {}
            }
        }
        self
    }

    fn of(kind: Kind) -> Self {
        Self { kind, reply: None, retry_after: None, source: None, source_type: None }
    }

    /// As the decision table sees it.
    pub(crate) fn ended(&self) -> Ended {
        match (self.kind, &self.reply) {
            (Kind::Reply, Some(reply)) => Ended::Replied(reply.status),
            (Kind::Replayable, _) => Ended::Replayable,
            (Kind::Retryable, _) => Ended::Retryable,
            (Kind::Unknown, _) => Ended::Unknown,
            (Kind::Refused, _) => Ended::Refused,
            (Kind::Opaque | Kind::Reply, _) => Ended::Broke,
        }
    }

    pub(crate) fn into_parts(self) -> (Option<Reply>, Option<Duration>) {
        (self.reply, self.retry_after)
    }

    /// The name of the type of an error that came through `?`; for a log, since releases of a compiler may differ in it.
    #[must_use]
    pub fn source_type(&self) -> Option<&'static str> {
        self.source_type
    }

    /// The error behind it.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        let source_type = Some(std::any::type_name::<E>());
        Self { source: Some(error.into()), source_type, ..Self::of(Kind::Opaque) }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("kind", &self.kind)
            .field("status", &self.reply.as_ref().map(|reply| reply.status))
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, &self.reply) {
            (Some(source), _) => write!(f, "{source}"),
            (None, Some(reply)) => write!(f, "answered {}", reply.status),
            (None, None) => f.write_str("failed"),
        }
    }
}

/// What an error of a call knows of the call. The client library inside a call must not retry on its own: it would
/// hide what the first try knew.
pub trait CallError: Error + Send + Sync + 'static {
    /// Whether the call left, and what the provider made of it.
    fn fate(&self) -> Fate;

    /// For a refusal: the answer to give for it. Without one, idem answers with a problem of its own.
    fn reply(&self) -> Option<Reply> {
        None
    }

    /// When the provider wants to be asked again, by its own Retry-After.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// What is known of a call that gave an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It provably never left this process: connection refused, no connection to be had.
    NeverLeft,
    /// The provider refused it for good: it did not happen, and will not under this key.
    Refused,
    /// Anything else: a time-out, a lost answer, a 5xx, and also "same key, other parameters".
    Unknown,
}

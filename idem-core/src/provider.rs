//! Calls over HTTP with reqwest: what each way of failing says of the call. Feature `reqwest`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode, redirect, retry};
use serde::de::DeserializeOwned;

use crate::reply::{CallError, Fate};

/// A provider's answer with a status of 2xx, body and all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl ProviderAnswer {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`ProviderError::Unreadable`]: the provider did something, and nobody can tell what.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ProviderError> {
        serde_json::from_slice(&self.body).map_err(ProviderError::Unreadable)
    }
}

/// Why a call over HTTP gave no answer of 2xx. Inside of [`Claim::call`](crate::Claim::call) it says of itself what is
/// known of the call:
///
/// | what happened | the call |
/// | --- | --- |
/// | the request could not be built; no connection (refused, no such host, no TLS) | never left |
/// | time-out, cut connection, body that breaks off | unknown |
/// | 2xx with a body that is not what was asked for | unknown |
/// | 401, 407, 425, 429 | never left: turned away at the door; its Retry-After is kept |
/// | the provider's "same key, other parameters" | unknown |
/// | 408, 409 | unknown: the first call under the key may still be under way |
/// | any other 4xx | refused for good |
/// | 3xx (none is followed), 5xx, anything else | unknown |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No answer, or half of one.
    #[error("the provider gave no answer")]
    NoAnswer {
        /// Whether the request provably never left.
        never_left: bool,
        /// What reqwest says.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that is not 2xx.
    #[error("the provider answered {}", answer.status)]
    Answered {
        /// The answer: an expected one, a declined card for instance, is better made an outcome of the call.
        answer: ProviderAnswer,
        /// What is known of the call.
        fate: Fate,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// A successful answer whose body is not what was asked for.
    #[error("the provider's answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

impl ProviderError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoAnswer { .. } => "PROVIDER_NO_ANSWER",
            Self::Answered { .. } => "PROVIDER_ANSWERED",
            Self::Unreadable(_) => "PROVIDER_UNREADABLE",
        }
    }
}

impl CallError for ProviderError {
    fn fate(&self) -> Fate {
        match self {
            Self::NoAnswer { never_left: true, .. } => Fate::NeverLeft,
            Self::NoAnswer { .. } | Self::Unreadable(_) => Fate::Unknown,
            Self::Answered { fate, .. } => *fate,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answered { retry_after, .. } => *retry_after,
            Self::NoAnswer { .. } | Self::Unreadable(_) => None,
        }
    }
}

/// A provider that is called over HTTP.
///
/// ```no_run
/// use idem_core::provider::Provider;
/// use idem_core::{Claim, Failure, Reply};
///
/// fn provider() -> Result<Provider, reqwest::Error> {
///     let client = reqwest::Client::builder().timeout(std::time::Duration::from_secs(10));
///     // Stripe's way of saying that the key was used with other parameters.
///     Provider::new(client, |answer| answer.status == 400 && answer.body.windows(17).any(|at| at == b"idempotency_error"))
/// }
///
/// async fn pay(claim: Claim, provider: Provider) -> Result<Reply, Failure> {
///     let receipt: String = claim
///         .call("charge", async |key| {
///             let request = provider.client().post("https://provider.example/charges");
///             provider.send(request.header("idempotency-key", key.as_str())).await?.json()
///         })
///         .await?;
///     Ok(Reply::status(201).body(receipt))
/// }
/// ```
#[derive(Clone)]
pub struct Provider {
    client: Client,
    key_conflict: Arc<dyn Fn(&ProviderAnswer) -> bool + Send + Sync>,
}

impl Provider {
    /// A provider behind this client, whose redirects and retries are turned off: either could send the request to
    /// somebody, and then say that no connection was to be had. Give it a time-out, shorter than the operation's `max_run`.
    ///
    /// `key_conflict` knows by status and body the provider's "this key was used with other parameters". Taken for a
    /// refusal it would say that nothing happened, while the first call under the key may have.
    ///
    /// # Errors
    /// What the client's builder says.
    pub fn new(
        client: ClientBuilder,
        key_conflict: impl Fn(&ProviderAnswer) -> bool + Send + Sync + 'static,
    ) -> Result<Self, reqwest::Error> {
        let client = client.redirect(redirect::Policy::none()).retry(retry::never()).build()?;
        Ok(Self { client, key_conflict: Arc::new(key_conflict) })
    }

    /// The client, to build requests with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request by [`Self::client`], whoever built it, and reads the whole answer.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub async fn send(&self, request: RequestBuilder) -> Result<ProviderAnswer, ProviderError> {
        let request = request.build().map_err(|source| ProviderError::NoAnswer { never_left: true, source })?;
        let no_answer = |source: reqwest::Error| {
            let never_left = source.is_builder() || source.is_connect();
            ProviderError::NoAnswer { never_left, source }
        };
        let response = self.client.execute(request).await.map_err(no_answer)?;
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let half = |source| ProviderError::NoAnswer { never_left: false, source };
        let answer = ProviderAnswer { status: status.as_u16(), body: response.bytes().await.map_err(half)?.into() };
        if status.is_success() {
            return Ok(answer);
        }
        let fate = if (self.key_conflict)(&answer) { Fate::Unknown } else { fate(status) };
        Err(ProviderError::Answered { answer, fate, retry_after })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("client", &self.client).finish_non_exhaustive()
    }
}

fn fate(status: StatusCode) -> Fate {
    match status.as_u16() {
        401 | 407 | 425 | 429 => Fate::NeverLeft,
        408 | 409 => Fate::Unknown,
        400..=499 => Fate::Refused,
        _ => Fate::Unknown,
    }
}

/// Seconds, or a date of HTTP.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(now).ok()
}

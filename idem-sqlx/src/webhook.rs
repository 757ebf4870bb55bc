//! A provider's webhooks: each has one effect, and an old one that somebody has kept has none.
//!
//! A webhook's signature proves who wrote it, not that it is new. So a delivery is known by two things: its event's id,
//! which is kept for a while, and the moment it was signed, which must be near. The moment is judged by the database's
//! clock, and the window is never longer than ids are kept ([`Endpoint::new`]): a delivery whose id is forgotten is too
//! old by then.

mod signature;

use std::error::Error as StdError;
use std::time::{Duration, SystemTime};

use sqlx::Transaction;

pub use signature::{EmptySecret, Secret, SignatureError};

use crate::inbox::{self, Consumer, Marked, OnceError, Seen};
use crate::outbox::{InvalidEvent, LONGEST_SPAN};
use crate::tables::Tables;
use crate::tables::statements::Mark;

/// Where one provider's webhooks arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    consumer: Consumer,
    tolerance: Duration,
}

impl Endpoint {
    /// An endpoint with ids of its own. A delivery is taken where it was signed within `tolerance` of now, before or after
    /// it (clocks differ); five minutes is usual. `keep` is how long its event's id is known again: longer than the
    /// provider sends a webhook again under new signatures, days as a rule.
    ///
    /// # Errors
    /// [`InvalidEndpoint`], also where `keep` is shorter than twice the tolerance: a delivery signed by a clock that is
    /// ahead could then be taken a second time.
    pub fn new(name: impl Into<String>, tolerance: Duration, keep: Duration) -> Result<Self, InvalidEndpoint> {
        let needed = tolerance.saturating_mul(2);
        if keep.min(LONGEST_SPAN) < needed {
            return Err(InvalidEndpoint::ForgetsTooSoon { keep, needed });
        }
        Ok(Self { consumer: Consumer::new(name)?.keep(keep), tolerance })
    }
}

/// Why an endpoint cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// The name.
    #[error("the endpoint's name cannot be kept")]
    Name(#[from] InvalidEvent),
    /// Ids would be forgotten while their deliveries are still taken.
    #[error("ids are kept for {keep:?}, and must be for {needed:?}, twice the tolerance")]
    ForgetsTooSoon {
        /// How long they were to be kept.
        keep: Duration,
        /// How long they must be.
        needed: Duration,
    },
}

impl InvalidEndpoint {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name(invalid) => invalid.code(),
            Self::ForgetsTooSoon { .. } => "WEBHOOK_ENDPOINT_FORGETS",
        }
    }
}

/// When a delivery was signed, as its verified signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedAt(SystemTime);

impl SignedAt {
    /// For a signature that another library has verified, the provider's own for instance: the moment must be part of what
    /// was signed. [`Secret::verify`] gives it for signatures of the common kind.
    #[must_use]
    pub fn verified_elsewhere(at: SystemTime) -> Self {
        Self(at)
    }
}

/// Acts on a delivery of a webhook, unless its event was acted on before, or it was not signed just now.
///
/// As [`inbox::once`], of which all holds. Evidence for a record whose outcome is unknown is written with the mark by
/// `store.evidence_in(&mut tx, &evidence)`.
///
/// ```
/// use std::time::Duration;
/// use idem_sqlx::inbox::Seen;
/// use idem_sqlx::webhook::{self, Endpoint, Secret};
///
/// # async fn receive(pool: sqlx::SqlitePool, header: &str, body: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::new("provider", Duration::from_secs(300), Duration::from_secs(30 * 24 * 60 * 60))?;
/// let signed_at = Secret::new("whsec_1")?.verify(header, body)?;
/// let event_id = "evt_1"; // read from the body
/// let tx = pool.begin_with("BEGIN IMMEDIATE").await?;
/// let told = webhook::once(tx, &endpoint, event_id, signed_at, |mut tx| async move {
///     sqlx::query("UPDATE payments SET state = 'settled'").execute(&mut **tx).await?;
///     Ok((tx, ()))
/// });
/// assert_eq!(told.await?, Seen::First(())); // either way the provider is answered 200
/// # Ok(()) }
/// # let dir = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.path().join("a.db")).create_if_missing(true);
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// # idem_sqlx::SqliteStore::beside(&pool).await?;
/// # sqlx::raw_sql("CREATE TABLE payments (state TEXT)").execute(&pool).await?;
/// # let header = Secret::new("whsec_1")?.sign(std::time::SystemTime::now(), b"{}");
/// # receive(pool, &header, b"{}").await })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`WebhookError`]; nothing was done.
pub async fn once<'c, DB, W, F, T>(
    tx: Transaction<'c, DB>,
    endpoint: &Endpoint,
    event_id: &str,
    signed_at: SignedAt,
    work: W,
) -> Result<Seen<T>, WebhookError>
where
    DB: Tables,
    W: FnOnce(Marked<'c, DB>) -> F,
    F: Future<Output = Result<(Marked<'c, DB>, T), Box<dyn StdError + Send + Sync>>>,
{
    let (tx, mark) = inbox::mark(tx, &endpoint.consumer, event_id).await?;
    // A refusal drops the transaction, and the mark with it.
    in_time(signed_at, endpoint.tolerance, &mark)?;
    Ok(inbox::act(tx, (&endpoint.consumer, event_id), mark, work).await?)
}

fn in_time(SignedAt(signed_at): SignedAt, tolerance: Duration, mark: &Mark) -> Result<(), WebhookError> {
    // After the mark, for which it may have waited: where the mark of an earlier delivery has been cleaned up by then,
    // this moment is after its time, and so after the window.
    if let Ok(age) = mark.now.duration_since(signed_at)
        && age > tolerance
    {
        return Err(WebhookError::TooOld { age, tolerance });
    }
    // Before the mark, from when on the id is kept: it is kept for as long as the delivery is taken.
    if let Ok(ahead) = signed_at.duration_since(mark.since)
        && ahead > tolerance
    {
        return Err(WebhookError::TooNew { ahead, tolerance });
    }
    Ok(())
}

/// Why a delivery was not acted on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// It was signed too long ago: kept by somebody and sent again, or held up. The provider signs a new one when it tries
    /// again; answer 400.
    #[error("the webhook was signed {age:?} ago, and is taken within {tolerance:?}")]
    TooOld {
        /// How long ago, by the database's clock.
        age: Duration,
        /// How long ago it may be.
        tolerance: Duration,
    },
    /// It was signed in the future: one of both clocks is wrong. Answer 400.
    #[error("the webhook was signed {ahead:?} in the future, and is taken within {tolerance:?}")]
    TooNew {
        /// How far ahead, by the database's clock.
        ahead: Duration,
        /// How far it may be.
        tolerance: Duration,
    },
    /// It could not be marked, or the work failed: rolled back. Answer 500, and the provider sends it again.
    #[error(transparent)]
    Once(#[from] OnceError),
}

impl WebhookError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooOld { .. } => "WEBHOOK_TOO_OLD",
            Self::TooNew { .. } => "WEBHOOK_TOO_NEW",
            Self::Once(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_secs(300);
    const NANO: Duration = Duration::from_nanos(1);

    /// The window's ends are part of it. The mark was waited for: what is old is so when it was there, what is new when it
    /// was asked for.
    #[test]
    fn the_window_ends_where_it_says() {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let now = since + Duration::from_secs(7);
        let mark = Mark { first: true, since, now };
        let told = |at| in_time(SignedAt(at), TOLERANCE, &mark).map_err(|refused| refused.code());
        for taken in [now - TOLERANCE, since, now, since + TOLERANCE] {
            assert_eq!(told(taken), Ok(()), "{taken:?}");
        }
        for old in [now - TOLERANCE - NANO, since - TOLERANCE, SystemTime::UNIX_EPOCH] {
            assert_eq!(told(old), Err("WEBHOOK_TOO_OLD"), "{old:?}");
        }
        for new in [since + TOLERANCE + NANO, now + TOLERANCE] {
            assert_eq!(told(new), Err("WEBHOOK_TOO_NEW"), "{new:?}");
        }
    }

    #[test]
    fn an_endpoint_forgets_nothing_that_it_takes() {
        let kept = |tolerance, keep| Endpoint::new("provider", tolerance, keep).map_err(|refused| refused.code());
        assert!(kept(TOLERANCE, TOLERANCE * 2).is_ok() && kept(TOLERANCE, Duration::MAX).is_ok());
        assert_eq!(kept(TOLERANCE, TOLERANCE * 2 - NANO), Err("WEBHOOK_ENDPOINT_FORGETS"));
        // No database keeps anything for so long.
        assert_eq!(kept(Duration::MAX / 2, Duration::MAX), Err("WEBHOOK_ENDPOINT_FORGETS"));
    }
}

//! What a person does about a record that nobody else can settle: look, decide, have it asked about again.

mod search;

use std::fmt;
use std::time::{Duration, SystemTime};

pub use search::{Page, Search, Standing};

use serde::Serialize;

use crate::calls::CallState;
use crate::decide::Becomes;
use crate::engine::Engine;
use crate::events::{Event, RecoveryStep};
use crate::key::Scope;
use crate::record::{Record, StatusName};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::store::{AuditEntry, ClosedCall, End, Evidence, Guarded, Seen, StoreError, Verdicted};

/// All that is known of one record.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The record, with its calls, their keys and states.
    pub record: Record,
    /// The store's clock when it was read.
    pub now: SystemTime,
    /// What was learned about its calls from outside, in the order in which it came.
    pub evidence: Vec<Evidence>,
    /// What was done to it by hand, oldest first.
    pub audit: Vec<AuditEntry>,
}

/// A person's verdict on a parked record.
///
/// ```
/// use idem_core::operator::Resolution;
/// use idem_core::Reply;
///
/// // The bank's statement shows the charge: the client gets the answer that it would have got.
/// let charged = Resolution::completed(Reply::status(201).body(r#"{"id":"pay_1"}"#));
/// // The charge went out, the mail did not: the client's next attempt sends it, and charges nothing.
/// let half = Resolution::resume().applied("charge", &"receipt_1")?.never_happened("mail");
/// # let _ = (charged, half);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    end: Ending,
    calls: Vec<ClosedCall>,
}

#[derive(Debug, Clone, PartialEq)]
enum Ending {
    Completed(Reply),
    Refused(Reply),
    Resume,
    NeverHappened,
}

impl Resolution {
    /// The command was carried out, and this is its answer from now on, with a status of 2xx or 3xx. Open calls of which
    /// nothing else is said count as made.
    #[must_use]
    pub fn completed(reply: Reply) -> Self {
        Self::of(Ending::Completed(reply))
    }

    /// The command was refused for good, and this is its answer from now on, with a status of 4xx or 5xx. Open calls of
    /// which nothing else is said count as refused with it.
    #[must_use]
    pub fn refused(reply: Reply) -> Self {
        Self::of(Ending::Refused(reply))
    }

    /// The client's next attempt goes on, and gets what is said here of each call. Something must be said of every open
    /// one: what is left open could be neither made again nor passed over.
    #[must_use]
    pub fn resume() -> Self {
        Self::of(Ending::Resume)
    }

    /// No open call ever happened: the client's next attempt makes them. **Wrong, it makes an effect twice.**
    #[must_use]
    pub fn never_happened_at_all() -> Self {
        Self::of(Ending::NeverHappened)
    }

    /// This call happened, with this outcome.
    ///
    /// # Errors
    /// Where the outcome has no JSON.
    pub fn applied<T: Serialize>(self, call: impl Into<String>, outcome: &T) -> Result<Self, serde_json::Error> {
        let outcome = serde_json::to_vec(outcome)?;
        Ok(self.closed(call.into(), CallState::Applied(outcome)))
    }

    /// This call was refused for good, and this is the answer that the work gives for it.
    #[must_use]
    pub fn rejected(self, call: impl Into<String>, reply: &Reply) -> Self {
        self.closed(call.into(), CallState::Rejected(reply.to_stored_bytes()))
    }

    /// This call never happened, and cannot arrive any more.
    #[must_use]
    pub fn never_happened(self, call: impl Into<String>) -> Self {
        self.closed(call.into(), CallState::Withdrawn)
    }

    fn of(end: Ending) -> Self {
        Self { end, calls: Vec::new() }
    }

    fn closed(mut self, name: String, state: CallState) -> Self {
        self.calls.retain(|call| call.name != name);
        self.calls.push(ClosedCall { name, state });
        self
    }

    /// What it writes into `record`, if it fits.
    fn verdict(&self, record: &Record, rules: &Rules, kept_headers: &[String]) -> Result<Verdicted, ResolveError> {
        let open = |name: &str| record.open_calls().any(|call| call.name == name);
        if let Some(call) = self.calls.iter().find(|call| !open(&call.name)) {
            return Err(ResolveError::CallNotOpen(call.name.clone()));
        }
        let mut closed = Vec::new();
        for call in record.open_calls() {
            let said = self.calls.iter().find(|said| said.name == call.name).map(|said| said.state.clone());
            let state = match (&self.end, said) {
                (_, Some(said)) => said.kept(kept_headers),
                // Nobody makes it again, so nobody reads its outcome.
                (Ending::Completed(_), None) => CallState::Applied(b"null".to_vec()),
                (Ending::Refused(reply), None) => CallState::Rejected(reply.to_kept_bytes(kept_headers)),
                (Ending::NeverHappened, None) => CallState::Withdrawn,
                (Ending::Resume, None) => return Err(ResolveError::CallLeftOpen(call.name.clone())),
            };
            closed.push(ClosedCall { name: call.name.clone(), state });
        }
        let kept = |reply: &Reply, end| reply.kept(end, rules, kept_headers);
        let keep = rules.keep();
        let end = match &self.end {
            Ending::Completed(reply) if (200..400).contains(&reply.status) => {
                End::Completed { response: kept(reply, Becomes::Completed), keep }
            }
            Ending::Refused(reply) if (400..600).contains(&reply.status) => {
                End::FailedReplayable { response: kept(reply, Becomes::FailedReplayable), keep }
            }
            Ending::Completed(reply) | Ending::Refused(reply) => return Err(ResolveError::Status(reply.status)),
            Ending::Resume | Ending::NeverHappened => End::FailedRetryable { retry_in: Duration::ZERO, keep },
        };
        Ok(Verdicted::Ended { closed, end })
    }
}

/// As the audit has it: the end, and what was said of single calls.
impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            Ending::Completed(reply) => write!(f, "completed {}", reply.status)?,
            Ending::Refused(reply) => write!(f, "refused {}", reply.status)?,
            Ending::Resume => f.write_str("resume")?,
            Ending::NeverHappened => f.write_str("never happened")?,
        }
        for call in &self.calls {
            let state = match &call.state {
                CallState::Applied(_) => "applied",
                CallState::Rejected(_) => "rejected",
                CallState::Withdrawn => "never happened",
                CallState::Open => "open",
            };
            write!(f, ", {} {state}", call.name)?;
        }
        Ok(())
    }
}

/// Why a record was not resolved; it stands as before, and the audit has no row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Whoever reads the audit later asks who and why.
    #[error("`{0}` must not be empty")]
    Unexplained(&'static str),
    /// There is no record.
    #[error("there is no such record")]
    NoRecord,
    /// Somebody or something still settles it, or has: only a parked record is a person's to decide.
    #[error("the record is {0} and not parked: no person is needed")]
    NotParked(StatusName),
    /// The verdict speaks of a call that is not open in this record.
    #[error("the call `{0}` is not open in this record")]
    CallNotOpen(String),
    /// The next attempt would meet a call of which nobody knows what became.
    #[error("the verdict says nothing of the call `{0}`, which is open")]
    CallLeftOpen(String),
    /// An answer with this status does not say what the verdict says.
    #[error("an answer with status {0} does not fit the verdict")]
    Status(u16),
    /// It changed each time that it was read; look again.
    #[error("the record keeps changing")]
    Changed,
    /// The store failed. Whether it was written is told by [`Engine::inspect`]: the audit has a row of it then.
    #[error("the record cannot be resolved")]
    Store(#[from] StoreError),
}

impl ResolveError {
    /// A stable name for logs and scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unexplained(_) => "RESOLVE_UNEXPLAINED",
            Self::NoRecord => "RESOLVE_NO_RECORD",
            Self::NotParked(_) => "RESOLVE_NOT_PARKED",
            Self::CallNotOpen(_) => "RESOLVE_CALL_NOT_OPEN",
            Self::CallLeftOpen(_) => "RESOLVE_CALL_LEFT_OPEN",
            Self::Status(_) => "RESOLVE_STATUS",
            Self::Changed => "RESOLVE_CHANGED",
            Self::Store(error) => error.code(),
        }
    }
}

/// What became of each record that a verdict was given on, in order.
pub type Resolved = Vec<(Scope, Result<(), ResolveError>)>;

/// What a person does.
impl Engine {
    /// All that is known of the record of `scope`; `None` where there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn inspect(&self, scope: &Scope) -> Result<Option<Inspection>, StoreError> {
        let Some(found) = self.store().look(scope).await? else { return Ok(None) };
        let evidence = self.store().learned(scope).await?;
        let audit = self.store().audited(scope).await?;
        Ok(Some(Inspection { record: found.record, now: found.now, evidence, audit }))
    }

    /// T14: ends a parked record as a person found out that it ended. The audit gets a row with who, what and why, in
    /// the same write; a worker that asks about the record right now writes nothing any more.
    ///
    /// ```
    /// # use idem_core::{Engine, IdempotentCommand, IdempotencyKey, MemoryStore, Reply, Scope, Tenant};
    /// # #[derive(IdempotentCommand)]
    /// # #[idem(operation = "pay", version = 1)]
    /// # struct Pay { cents: u64 }
    /// use idem_core::operator::Resolution;
    ///
    /// # futures_executor::block_on(async {
    /// let engine = Engine::builder(MemoryStore::new()).build()?;
    /// let scope = Scope::new(Tenant::new("acme")?, "pay", "order-1".parse()?);
    /// let verdict = Resolution::completed(Reply::status(201));
    /// let refused = engine.resolve(&scope, &verdict, "ada", "on the bank's statement of 3 May").await.unwrap_err();
    /// assert_eq!(refused.code(), "RESOLVE_NO_RECORD");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn resolve(
        &self,
        scope: &Scope,
        resolution: &Resolution,
        actor: &str,
        reason: &str,
    ) -> Result<(), ResolveError> {
        let action = format!("resolve: {resolution}");
        let rules = self.rules_of(scope.operation());
        let verdict = |record: &Record| resolution.verdict(record, rules, self.kept_headers());
        self.decide_by_hand(scope, &action, (actor, reason), verdict).await
    }

    /// T14: a parked record is asked about by the next round of recovery, instead of within the hour. Where its providers
    /// still do not know, or nobody can be asked, that round parks it again. The audit gets a row.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn ask_again(&self, scope: &Scope, actor: &str, reason: &str) -> Result<(), ResolveError> {
        self.decide_by_hand(scope, "ask again", (actor, reason), |_| Ok(Verdicted::AskAgain)).await
    }

    /// [`Self::resolve`] for many records, each in a write of its own: one that is refused holds up no other.
    pub async fn resolve_all(
        &self,
        scopes: impl IntoIterator<Item = Scope>,
        resolution: &Resolution,
        actor: &str,
        reason: &str,
    ) -> Resolved {
        let mut resolved = Vec::new();
        for scope in scopes {
            let result = self.resolve(&scope, resolution, actor, reason).await;
            resolved.push((scope, result));
        }
        resolved
    }

    /// [`Self::ask_again`] for many records, each in a write of its own.
    pub async fn ask_again_all(&self, scopes: impl IntoIterator<Item = Scope>, actor: &str, reason: &str) -> Resolved {
        let mut resolved = Vec::new();
        for scope in scopes {
            let result = self.ask_again(&scope, actor, reason).await;
            resolved.push((scope, result));
        }
        resolved
    }

    async fn decide_by_hand(
        &self,
        scope: &Scope,
        action: &str,
        (actor, reason): (&str, &str),
        verdict: impl Fn(&Record) -> Result<Verdicted, ResolveError>,
    ) -> Result<(), ResolveError> {
        for (name, text) in [("actor", actor), ("reason", reason)] {
            if text.trim().is_empty() {
                return Err(ResolveError::Unexplained(name));
            }
        }
        let audit = AuditEntry {
            scope: Some(scope.clone()),
            action: action.to_owned(),
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        let mut found = self.store().look(scope).await?;
        for _ in 0..ROUNDS {
            let Some(record) = found.map(|found| found.record) else { return Err(ResolveError::NoRecord) };
            if !record.is_parked() {
                return Err(ResolveError::NotParked(record.status.name()));
            }
            found = match self.store().resolve(&Seen::of(&record), &verdict(&record)?, &audit).await? {
                Guarded::Written { .. } => {
                    let operation = scope.operation();
                    self.observe(&Event::Recovered { operation, step: RecoveryStep::ByHand });
                    tracing::info!(operation, action, actor, "a person decided on a record");
                    return Ok(());
                }
                Guarded::Changed(changed) => changed,
            };
        }
        Err(ResolveError::Changed)
    }
}

/// How often a verdict is given when the record changes under it: a worker that asks meanwhile writes twice.
const ROUNDS: usize = 4;

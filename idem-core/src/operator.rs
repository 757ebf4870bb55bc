//! What a person does about a record that nobody else can settle: look, decide, have it asked about again.

mod resolution;
mod search;

use std::time::SystemTime;

pub use crate::engine::rebuilt;
pub use resolution::Resolution;
pub use search::{Page, Search, Standing};

use crate::engine::Engine;
use crate::events::{Event, RecoveryStep};
use crate::key::Scope;
use crate::record::{Fence, Record, Revision, StatusName};
use crate::store::{AuditEntry, Dated, Evidence, Guarded, Seen, StoreError, Verdicted};

/// All that is known of one record.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The record, with its calls, their keys and states.
    pub record: Record,
    /// The store's clock when it was read.
    pub now: SystemTime,
    /// What was learned about its calls from outside, in the order in which it came.
    pub evidence: Vec<Dated<Evidence>>,
    /// What was done to it by hand, oldest first.
    pub audit: Vec<Dated<AuditEntry>>,
}

/// A record to decide on, and how it stood when it was seen. Bound so, a verdict is written only while it stands like that:
/// what has happened to it since, nobody has looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    scope: Scope,
    fence: Option<Fence>,
    revision: Option<Revision>,
}

impl Target {
    /// Only while it has this fence: nobody has run it, asked about it or decided on it since.
    #[must_use]
    pub fn at_fence(self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// Only while it has this revision: nothing at all was written since.
    #[must_use]
    pub fn at_revision(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    fn is(&self, record: &Record) -> bool {
        self.fence.is_none_or(|fence| fence == record.fence)
            && self.revision.is_none_or(|revision| revision == record.revision)
    }
}

/// However it stands by then.
impl From<Scope> for Target {
    fn from(scope: Scope) -> Self {
        Self { scope, fence: None, revision: None }
    }
}

/// However it stands by then.
impl From<&Scope> for Target {
    fn from(scope: &Scope) -> Self {
        scope.clone().into()
    }
}

/// As it stands there.
impl From<&Record> for Target {
    fn from(record: &Record) -> Self {
        Self::from(&record.scope).at_fence(record.fence).at_revision(record.revision)
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
    /// It does not stand any more as it was seen by who decides: look again.
    #[error("the record does not stand as it was seen: it has fence {fence} and revision {revision} now")]
    NotAsSeen {
        /// The fence that it has.
        fence: u64,
        /// The revision that it has.
        revision: u64,
    },
    /// The verdict speaks of a call that is not open in this record.
    #[error("the call `{0}` is not open in this record")]
    CallNotOpen(String),
    /// The next attempt would meet a call of which nobody knows what became.
    #[error("the verdict says nothing of the call `{0}`, which is open")]
    CallLeftOpen(String),
    /// A verdict about one call closes no other by implication.
    #[error("the verdict speaks of another call, and `{0}` is open too: say what became of it")]
    OtherCallOpen(String),
    /// The verdict denies what was learned of a call; see [`Resolution::against_evidence`].
    #[error("the verdict on the call `{call}` denies what `{source_of_it}` said of it")]
    AgainstEvidence {
        /// The call.
        call: String,
        /// Where the evidence came from.
        source_of_it: String,
    },
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
            Self::NotAsSeen { .. } => "RESOLVE_NOT_AS_SEEN",
            Self::OtherCallOpen(_) => "RESOLVE_OTHER_CALL_OPEN",
            Self::AgainstEvidence { .. } => "RESOLVE_AGAINST_EVIDENCE",
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
        target: impl Into<Target>,
        resolution: &Resolution,
        actor: &str,
        reason: &str,
    ) -> Result<(), ResolveError> {
        let target = target.into();
        let rules = self.rules_of(target.scope.operation());
        let verdict = |record: &Record, learned: &[Dated<Evidence>]| {
            resolution.verdict(record, learned, rules, self.kept_headers())
        };
        self.decide_by_hand(&target, (actor, reason), verdict).await
    }

    /// T14: a parked record is asked about by the next round of recovery, instead of within the hour. Where its providers
    /// still do not know, or nobody can be asked, that round parks it again. The audit gets a row.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn ask_again(&self, target: impl Into<Target>, actor: &str, reason: &str) -> Result<(), ResolveError> {
        let ask_again = |_: &Record, _: &[Dated<Evidence>]| Ok((Verdicted::AskAgain, "ask again".to_owned()));
        self.decide_by_hand(&target.into(), (actor, reason), ask_again).await
    }

    /// [`Self::resolve`] for many records with `call` open, each in a write of its own: one that is refused holds up no
    /// other. The verdict speaks of that call; where another one is open too, of which it says nothing, the record is
    /// refused ([`ResolveError::OtherCallOpen`]). Name the records as they were seen, [`Target`].
    pub async fn resolve_all<T: Into<Target>>(
        &self,
        targets: impl IntoIterator<Item = T>,
        call: &str,
        resolution: &Resolution,
        actor: &str,
        reason: &str,
    ) -> Resolved {
        let resolution = resolution.clone().about(call);
        let mut resolved = Vec::new();
        for target in targets {
            let target = target.into();
            let result = self.resolve(target.clone(), &resolution, actor, reason).await;
            resolved.push((target.scope, result));
        }
        resolved
    }

    /// [`Self::ask_again`] for many records, each in a write of its own.
    pub async fn ask_again_all<T: Into<Target>>(
        &self,
        targets: impl IntoIterator<Item = T>,
        actor: &str,
        reason: &str,
    ) -> Resolved {
        let mut resolved = Vec::new();
        for target in targets {
            let target = target.into();
            let result = self.ask_again(target.clone(), actor, reason).await;
            resolved.push((target.scope, result));
        }
        resolved
    }

    async fn decide_by_hand(
        &self,
        target: &Target,
        (actor, reason): (&str, &str),
        verdict: impl Fn(&Record, &[Dated<Evidence>]) -> Result<(Verdicted, String), ResolveError>,
    ) -> Result<(), ResolveError> {
        let scope = &target.scope;
        for (name, text) in [("actor", actor), ("reason", reason)] {
            if text.trim().is_empty() {
                return Err(ResolveError::Unexplained(name));
            }
        }
        let mut found = self.store().look(scope).await?;
        for _ in 0..ROUNDS {
            let Some(record) = found.map(|found| found.record) else { return Err(ResolveError::NoRecord) };
            if !record.is_parked() {
                return Err(ResolveError::NotParked(record.status.name()));
            }
            if !target.is(&record) {
                let (fence, revision) = (record.fence.get(), record.revision.get());
                return Err(ResolveError::NotAsSeen { fence, revision });
            }
            let learned = self.store().learned(scope).await?;
            let (verdicted, action) = verdict(&record, &learned)?;
            let audit =
                AuditEntry { scope: Some(scope.clone()), action, actor: actor.to_owned(), reason: reason.to_owned() };
            found = match self.store().resolve(&Seen::of(&record), &verdicted, &audit).await? {
                Guarded::Written { .. } => {
                    let (operation, action) = (scope.operation(), audit.action);
                    self.observe(&Event::Recovered { operation, step: RecoveryStep::ByHand });
                    tracing::info!(operation, action, actor, "a person decided on a record");
                    // What came in between, the verdict has not heard.
                    self.inner().look_for_contradictions(scope).await;
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

//! A person's verdict: how a parked record ended, and what became of its calls.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::calls::CallState;
use crate::decide::{Becomes, denies, weightiest};
use crate::operator::ResolveError;
use crate::record::{Record, ResourceRef};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::store::{ClosedCall, Dated, End, Evidence, Verdicted};

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
    /// The one call that it speaks of, besides those in `calls`.
    about: Option<String>,
    /// Calls whose evidence it denies.
    against: Vec<String>,
    resource: Option<ResourceRef>,
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

    /// The verdict on this call holds though what was learned of it says otherwise: that it happened, where this says
    /// refused or never made, or the other way round. Without this such a verdict is refused
    /// ([`ResolveError::AgainstEvidence`]); the audit says that it was given.
    #[must_use]
    pub fn against_evidence(mut self, call: impl Into<String>) -> Self {
        self.against.push(call.into());
        self
    }

    /// What the command made, where its record does not say so yet.
    #[must_use]
    pub fn makes(self, kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { resource: Some(ResourceRef { kind: kind.into(), id: id.into() }), ..self }
    }

    /// It closes no other open call by implication.
    pub(super) fn about(self, call: &str) -> Self {
        Self { about: Some(call.to_owned()), ..self }
    }

    fn of(end: Ending) -> Self {
        Self { end, calls: Vec::new(), about: None, against: Vec::new(), resource: None }
    }

    fn closed(mut self, name: String, state: CallState) -> Self {
        self.calls.retain(|call| call.name != name);
        self.calls.push(ClosedCall { name, state });
        self
    }

    /// What it writes into `record`, if it fits, and what the audit says of it.
    pub(super) fn verdict(
        &self,
        record: &Record,
        learned: &[Dated<Evidence>],
        rules: &Rules,
        kept_headers: &[String],
    ) -> Result<(Verdicted, String), ResolveError> {
        let open = |name: &str| record.open_calls().any(|call| call.name == name);
        let named = self.calls.iter().map(|call| &call.name).chain(&self.about).chain(&self.against);
        if let Some(call) = named.into_iter().find(|name| !open(name)) {
            return Err(ResolveError::CallNotOpen(call.clone()));
        }
        let (mut closed, mut implied, mut denied) = (Vec::new(), Vec::new(), Vec::new());
        for call in record.open_calls() {
            let name = &call.name;
            let said = self.calls.iter().find(|said| said.name == *name).map(|said| said.state.clone());
            if said.is_none() && self.about.as_ref().is_some_and(|about| about != name) {
                return Err(ResolveError::OtherCallOpen(name.clone()));
            }
            let is_implied = said.is_none();
            let state = match (&self.end, said) {
                (_, Some(said)) => said.kept(kept_headers),
                // Nobody makes it again, so nobody reads its outcome.
                (Ending::Completed(_), None) => CallState::Applied(b"null".to_vec()),
                (Ending::Refused(reply), None) => CallState::Rejected(reply.to_kept_bytes(kept_headers)),
                (Ending::NeverHappened, None) => CallState::Withdrawn,
                (Ending::Resume, None) => return Err(ResolveError::CallLeftOpen(name.clone())),
            };
            if is_implied {
                implied.push(format!("{name} {}", word(&state)));
            }
            let of_it = learned.iter().map(|learned| &learned.what).filter(|evidence| evidence.key == call.key);
            let told = weightiest(of_it.clone().map(|evidence| &evidence.state));
            if let Some(told) = told.filter(|told| denies(told, &state)) {
                let source = of_it.clone().find(|evidence| evidence.state == *told).map(|evidence| &evidence.source);
                let source = source.cloned().unwrap_or_default();
                if !self.against.contains(name) {
                    return Err(ResolveError::AgainstEvidence { call: name.clone(), source_of_it: source });
                }
                denied.push(format!("{name} {} by {source}", word(told)));
            }
            closed.push(ClosedCall { name: name.clone(), state });
        }
        let mut action = format!("resolve: {self}");
        for (how, calls) in [("by implication", implied), ("against evidence", denied)] {
            if !calls.is_empty() {
                action += &format!("; {how}: {}", calls.join(", "));
            }
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
        Ok((Verdicted::Ended { closed, resource: self.resource.clone(), end }, action))
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
            write!(f, ", {} {}", call.name, word(&call.state))?;
        }
        if let Some(made) = &self.resource {
            write!(f, ", makes {} {}", made.kind, made.id)?;
        }
        Ok(())
    }
}

fn word(state: &CallState) -> &'static str {
    match state {
        CallState::Applied(_) => "applied",
        CallState::Rejected(_) => "rejected",
        CallState::Withdrawn => "never happened",
        CallState::Open => "open",
    }
}

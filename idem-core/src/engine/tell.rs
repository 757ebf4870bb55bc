//! Telling the observer what happens to a request.

use std::time::Duration;

use crate::engine::{Answer, Begin, Claim, Inner};
use crate::events::{AnswerKind, Event, How};
use crate::record::StatusName;
use crate::store::StoreError;

impl Inner {
    pub(super) fn runs(&self, claim: Claim, how: How) -> Begin {
        let (operation, attempt) = (claim.scope().operation(), claim.attempt());
        self.observer.observe(&Event::Claimed { operation, how, attempt });
        Begin::Run(claim)
    }

    pub(super) fn decided(&self, operation: &str, answer: Answer, age: Duration) -> Begin {
        self.observer.observe(&Event::Answered { operation, kind: answer.kind(), age });
        Begin::Decided(answer)
    }

    pub(super) fn failed(&self, error: StoreError) -> StoreError {
        self.observer.observe(&Event::StoreFailed { code: error.code() });
        error
    }
}

impl Claim {
    /// How the record stands, and how long the work and the storing of its end took.
    pub(super) fn tell_ended(&self, status: StatusName, ran: Duration, stored: Duration) {
        #[cfg(feature = "tracing")]
        tracing::Span::current().record("state", status.as_str());
        self.tell(|operation| Event::Ended { operation, status, ran, stored });
    }

    pub(super) fn tell_not_stored(&self) {
        self.tell(|operation| Event::NotStored { operation });
    }

    pub(super) fn tell_lost(&self) {
        self.tell(|operation| Event::Lost { operation });
    }

    fn tell<'a>(&'a self, event: impl FnOnce(&'a str) -> Event<'a>) {
        if self.recorded {
            self.engine.observer.observe(&event(self.scope().operation()));
        }
    }
}

impl Answer {
    fn kind(&self) -> AnswerKind {
        match self {
            Self::Replay { .. } => AnswerKind::Replay,
            Self::NotKept { .. } => AnswerKind::NotKept,
            Self::Mismatch(_) => AnswerKind::Mismatch,
            Self::InProgress { .. } => AnswerKind::InProgress,
            Self::RetryLater { .. } => AnswerKind::RetryLater,
            Self::OutcomeUnknown { .. } => AnswerKind::Unknown,
            Self::Unresolved { .. } => AnswerKind::Unresolved,
            Self::Expired { .. } => AnswerKind::Expired,
            Self::ContractUnknown { .. } | Self::ContractRetired { .. } => AnswerKind::Contract,
        }
    }
}

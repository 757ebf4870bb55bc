//! Telling the observer what happens to a request.

use std::time::Duration;

use crate::engine::{Answer, Begin, Claim, Inner, Outcome};
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
    /// What became of the work, and how long it and the storing of its end took.
    pub(super) fn tell(&self, outcome: &Outcome, ran: Duration, stored: Duration) {
        if !self.recorded {
            return;
        }
        let operation = self.scope().operation();
        let ended = |status| Event::Ended { operation, status, ran, stored };
        self.engine.observer.observe(&match outcome {
            Outcome::Done { reply, .. } if reply.status < 400 => ended(StatusName::Completed),
            Outcome::Done { .. } => ended(StatusName::FailedReplayable),
            Outcome::Failed { .. } => ended(StatusName::FailedRetryable),
            Outcome::Unknown { .. } => ended(StatusName::Unknown),
            Outcome::NotStored { .. } => Event::NotStored { operation },
            Outcome::Second(_) => Event::Lost { operation },
        });
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

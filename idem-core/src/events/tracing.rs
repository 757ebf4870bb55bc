//! Events as lines of the log, through `tracing`: any subscriber takes them.

use std::time::Duration;

use super::{AnswerKind, CallFate, Event, How, Observer};
use crate::record::StatusName;

/// Writes every event into the log, under the target `idempotency`. What happened is the message; its fields have one
/// name wherever they mean one thing: `operation`, `outcome` (what an answer, a call or a question came to), `state` (how
/// the record stands), spans in seconds. Keys and tenants are the client's and are never written; within the span
/// `idempotent`, which the work of a claim runs in, `id` names the command: the part that its derived ids share.
///
/// Errors are what a person has to look at, warnings what should be rare.
///
/// ```
/// use idem_core::{Engine, MemoryStore, events::TracingObserver};
///
/// let engine = Engine::builder(MemoryStore::new()).observer(TracingObserver).build()?;
/// # Ok::<(), idem_core::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingObserver;

/// The level is part of a line's place in the program, so it must be a constant.
macro_rules! line {
    ($is_warning:expr, $($line:tt)+) => {
        if $is_warning {
            tracing::warn!(target: "idempotency", $($line)+);
        } else {
            tracing::info!(target: "idempotency", $($line)+);
        }
    };
}

impl Observer for TracingObserver {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::Claimed { operation, how, attempt } => {
                line!(how == How::TakeOver, operation, how = how.as_str(), attempt, "claimed");
            }
            Event::Answered { operation, kind, age } => {
                line!(is_rare(kind), operation, outcome = kind.as_str(), age = seconds(age), "answered");
            }
            Event::Ended { operation, status, ran, stored } => {
                let failed = matches!(status, StatusName::FailedRetryable | StatusName::Unknown);
                let state = status.as_str();
                line!(failed, operation, state, ran = seconds(ran), stored = seconds(stored), "ended");
            }
            Event::NotStored { operation } => {
                tracing::error!(target: "idempotency", operation, "not stored");
            }
            Event::Lost { operation } => tracing::warn!(target: "idempotency", operation, "lost"),
            Event::Hung { operation, ran } => {
                tracing::error!(target: "idempotency", operation, ran = seconds(ran), "hung");
            }
            Event::Called { operation, call, fate, took } => {
                let outcome = fate.as_str();
                line!(fate == CallFate::Unknown, operation, call, outcome, took = seconds(took), "called");
            }
            Event::StoreFailed { code } => tracing::error!(target: "idempotency", code, "store failed"),
            Event::Recovered { operation, step } => {
                line!(false, operation, outcome = step.as_str(), "recovered");
            }
            Event::Contradicted { operation, call, stands, told } => {
                let (outcome, told) = (stands.as_str(), told.as_str());
                tracing::error!(target: "idempotency", operation, call, outcome, told, "contradicted");
            }
            Event::Parked { operation, age } => {
                tracing::error!(target: "idempotency", operation, age = seconds(age), "parked");
            }
            Event::Swept(swept) => {
                let (bodies, expired, purged) = (swept.bodies, swept.expired, swept.purged);
                tracing::debug!(target: "idempotency", bodies, expired, purged, "swept");
            }
            Event::Oldest(oldest) => {
                let [abandoned, unknown, parked] = [oldest.abandoned, oldest.unknown, oldest.parked].map(seconds);
                tracing::debug!(target: "idempotency", abandoned, unknown, parked, "oldest");
            }
            Event::WorkerSeen { silence } => {
                tracing::debug!(target: "idempotency", silence = seconds(silence), "worker seen");
            }
            Event::WorkerBroke { round } => tracing::error!(target: "idempotency", round, "worker broke"),
            Event::NoWorker { silence } => {
                tracing::error!(target: "idempotency", silence = seconds(silence), "no worker");
            }
        }
    }
}

/// What well-behaved clients and builds do not meet every day.
fn is_rare(kind: AnswerKind) -> bool {
    matches!(kind, AnswerKind::Mismatch | AnswerKind::Unresolved | AnswerKind::Expired | AnswerKind::Contract)
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

//! Events as numbers, through the `metrics` facade: any exporter takes them.

use metrics::{counter, gauge, histogram};

use super::{AnswerKind, Event, Observer, RecoveryStep};
use crate::record::StatusName;

/// Counts every event. `docs/operations.md` lists the names, and which of them deserve an alert.
///
/// ```
/// use idem_core::{Engine, MemoryStore, events::MetricsObserver};
///
/// let engine = Engine::builder(MemoryStore::new()).observer(MetricsObserver).build()?;
/// # Ok::<(), idem_core::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MetricsObserver;

impl Observer for MetricsObserver {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::Claimed { operation, how, .. } => {
                counter!("idempotency.claim.count", "operation" => operation.to_owned(), "how" => how.as_str())
                    .increment(1);
            }
            Event::Answered { operation, kind, .. } => answered(operation, kind),
            Event::Ended { operation, status, ran, stored } => {
                let labels = [("operation", operation.to_owned()), ("status", status.to_string())];
                counter!("idempotency.end.count", &labels).increment(1);
                histogram!("idempotency.work.seconds", &labels).record(ran);
                histogram!("idempotency.store.seconds", &labels).record(stored);
                if status == StatusName::Unknown {
                    unknown(operation);
                }
            }
            Event::NotStored { operation } => {
                counter!("idempotency.not_stored.count", "operation" => operation.to_owned()).increment(1);
            }
            Event::Lost { operation } => {
                counter!("idempotency.lost_claim.count", "operation" => operation.to_owned()).increment(1);
            }
            Event::Hung { operation, .. } => {
                counter!("idempotency.hung.count", "operation" => operation.to_owned()).increment(1);
            }
            Event::Called { operation, call, fate, took } => {
                let labels = [
                    ("operation", operation.to_owned()),
                    ("call", call.to_owned()),
                    ("fate", fate.as_str().to_owned()),
                ];
                counter!("idempotency.call.count", &labels).increment(1);
                histogram!("idempotency.call.seconds", &labels).record(took);
            }
            Event::StoreFailed { code } => {
                counter!("idempotency.store_error.count", "code" => code.to_owned()).increment(1);
            }
            Event::Recovered { operation, step } => {
                counter!("idempotency.recovery.count", "operation" => operation.to_owned(), "verdict" => step.as_str())
                    .increment(1);
                if step == RecoveryStep::Stranded {
                    unknown(operation);
                }
            }
            Event::Contradicted { operation, call, told, .. } => {
                let labels = [
                    ("operation", operation.to_owned()),
                    ("call", call.to_owned()),
                    ("told", told.as_str().to_owned()),
                ];
                counter!("idempotency.contradiction.count", &labels).increment(1);
            }
            Event::Parked { operation, .. } => {
                counter!("idempotency.parked.count", "operation" => operation.to_owned()).increment(1);
            }
            Event::Swept(swept) => {
                counter!("idempotency.swept.count", "what" => "bodies").increment(swept.bodies);
                counter!("idempotency.swept.count", "what" => "expired").increment(swept.expired);
                counter!("idempotency.swept.count", "what" => "purged").increment(swept.purged);
            }
            Event::Oldest(oldest) => {
                gauge!("idempotency.in_progress.age.max").set(oldest.abandoned);
                gauge!("idempotency.unknown_state.age.max").set(oldest.unknown);
                gauge!("idempotency.parked.age.max").set(oldest.parked);
            }
            Event::WorkerSeen { silence } | Event::NoWorker { silence } => {
                gauge!("idempotency.worker.silence.seconds").set(silence);
            }
            Event::WorkerBroke { round } => {
                counter!("idempotency.worker.panic.count", "round" => round.to_owned()).increment(1);
            }
        }
    }
}

fn answered(operation: &str, kind: AnswerKind) {
    let operation = || operation.to_owned();
    counter!("idempotency.answer.count", "operation" => operation(), "kind" => kind.as_str()).increment(1);
    // Those that people alert on have names of their own.
    match kind {
        AnswerKind::Replay => counter!("idempotency.replay.count", "operation" => operation()).increment(1),
        AnswerKind::Mismatch => {
            counter!("idempotency.conflict.different_request.count", "operation" => operation()).increment(1);
        }
        AnswerKind::Expired => counter!("idempotency.expired_retry.count", "operation" => operation()).increment(1),
        _ => {}
    }
}

/// A record came into the state in which nobody knows.
fn unknown(operation: &str) {
    counter!("idempotency.unknown_state.count", "operation" => operation.to_owned()).increment(1);
}

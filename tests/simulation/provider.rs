//! The payment providers: calls arrive late or never, answers are lost, questions are answered truly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::{CallClass, CallError, CallState, DownstreamKey, Fate};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::chance::{Chance, Kind};

/// What a provider promises, and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    DedupesAndAnswers,
    Dedupes,
    Answers,
    Neither,
}

impl Habit {
    pub(crate) const ALL: [Self; 4] = [Self::DedupesAndAnswers, Self::Dedupes, Self::Answers, Self::Neither];

    pub(crate) fn class(self) -> CallClass {
        match self {
            Self::DedupesAndAnswers | Self::Dedupes => CallClass::Dedupes { retention: RETENTION },
            Self::Answers => CallClass::QueryOnly { quiescence: QUIESCENCE },
            Self::Neither => CallClass::Neither,
        }
    }

    pub(crate) fn askable(self) -> bool {
        matches!(self, Self::DedupesAndAnswers | Self::Answers)
    }

    fn dedupes(self) -> bool {
        matches!(self, Self::DedupesAndAnswers | Self::Dedupes)
    }
}

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Provider {
    chance: Chance,
    pub(crate) habit: Habit,
    known: Arc<Mutex<BTreeMap<String, Known>>>,
}

/// What it did under one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    since: Option<Instant>,
    amount: u64,
    rejected: bool,
    pub(crate) sent: u32,
    pub(crate) effects: u32,
}

/// Why a call gave no receipt.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the call failed: {0:?}")]
pub(crate) struct Failed(Fate);

impl CallError for Failed {
    fn fate(&self) -> Fate {
        self.0
    }
}

impl Provider {
    pub(crate) fn new(chance: &Chance, habit: Habit) -> Self {
        Self { chance: chance.clone(), habit, known: Arc::default() }
    }

    /// What it has done, by key.
    pub(crate) fn known(&self) -> BTreeMap<String, Known> {
        self.known.lock().unwrap().clone()
    }

    /// A call: it is on its way for itself, whatever becomes of who made it.
    pub(crate) async fn call(&self, key: DownstreamKey, amount: u64, declines: bool) -> Result<String, Failed> {
        if self.chance.wrong(4) {
            return Err(Failed(Fate::NeverLeft));
        }
        self.chance.tell(Kind::Invoke, || format!("call {key} {amount}"));
        self.known.lock().unwrap().entry(key.to_string()).or_default().sent += 1;
        let (answer, answered) = oneshot::channel();
        if !self.chance.wrong(8) {
            let provider = self.clone();
            let trip = if self.chance.wrong(10) { LATEST } else { Duration::from_secs(3) };
            tokio::spawn(async move {
                provider.chance.wait(trip).await;
                let outcome = provider.arrives(&key, amount, declines);
                if !provider.chance.wrong(10) {
                    // The caller may have given up.
                    let _ = answer.send(outcome);
                }
            });
        }
        match tokio::time::timeout(TIME_OUT, answered).await {
            Ok(Ok(Ok(receipt))) => Ok(receipt),
            Ok(Ok(Err(failed))) => Err(failed),
            Ok(Err(_)) | Err(_) => Err(Failed(Fate::Unknown)),
        }
    }

    fn arrives(&self, key: &DownstreamKey, amount: u64, declines: bool) -> Result<String, Failed> {
        let mut all = self.known.lock().unwrap();
        let known = all.entry(key.to_string()).or_default();
        let is_remembered = known.since.is_some_and(|since| since.elapsed() < RETENTION);
        if self.habit.dedupes() && is_remembered {
            if known.amount != amount {
                return Err(Failed(Fate::Unknown));
            }
        } else {
            known.since = known.since.or(Some(Instant::now()));
            known.amount = amount;
            known.rejected = declines;
            known.effects += u32::from(!declines);
        }
        let effects = known.effects;
        let rejected = known.rejected;
        drop(all);
        self.chance.tell(Kind::Ok, || format!("arrived {key} {amount}: {effects} effects"));
        if rejected { Err(Failed(Fate::Refused)) } else { Ok(format!("receipt of {amount}")) }
    }

    /// What became of a call.
    pub(crate) fn find(&self, key: &DownstreamKey) -> Option<CallState> {
        let known = self.known.lock().unwrap().get(key.as_str()).cloned().filter(|known| known.since.is_some())?;
        Some(match known.rejected {
            true => CallState::Rejected(Vec::new()),
            false => CallState::Applied(format!("\"receipt of {}\"", known.amount).into_bytes()),
        })
    }
}

const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Longer than a call is under way, by more than any clock is set ahead.
const QUIESCENCE: Duration = Duration::from_secs(15 * 60);
const LATEST: Duration = Duration::from_secs(60);
const TIME_OUT: Duration = Duration::from_secs(10);

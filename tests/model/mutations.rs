//! What happens without one of the guards: each has to break a promise, or the promise is not looked at.

use crate::config::{Config, Kind};
use crate::properties::{
    ANSWER_STAYS, ANSWERED, APPLIED_IS_TRUE, CALLS_HAVE_OWNERS, EFFECT_ONCE, FENCE_HOLDS, NO_SHARING,
    ROW_WHEN_COMPLETED, SETTLES,
};

/// What is taken out, or told wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// An owner writes whatever its fence.
    NoFenceCheck,
    /// An owner writes while the record's lease runs, whosever it is.
    LiveLeaseCheck,
    /// A claim looks, and then writes blindly.
    CheckThenInsert,
    /// A take-over is guarded by what stands there now, not by what was decided on.
    RevisionNotSeen,
    /// Every command is taken for the record's.
    HashNotCompared,
    /// Calls leave without an announcement.
    NotAnnounced,
    /// "I do not know it" counts at once at a provider that only answers.
    NotAppliedIsFinal,
    /// A call that nobody can tell of is made again.
    RerunUnknown,
    /// The key that a provider gets depends on the record, not on what it stands for.
    KeyFromRowId,
    /// Records go when they are old, however they stand.
    CleanupByAge,
    /// Nobody takes over.
    NoTakeOver,
    /// Providers are taken to remember keys for ever.
    NoRetentionBound,
    /// The worker leaves records in progress alone.
    NoWorkerForAbandoned,
    /// A settlement writes the record without the application's row.
    SettledWithoutRows,
    /// Whoever asks takes a call that its provider does not know for one that happened.
    UnknownIsApplied,
}

/// Each mutation, the smallest world that shows it, and the promise that it breaks.
#[rustfmt::skip] // a table
pub(crate) fn table() -> Vec<(Mutation, Config, &'static str)> {
    use Kind::{Answers, Dedupes, DedupesAndAnswers, Neither};
    use Mutation as M;
    let small = |calls| Config { clients: &[(0, 2)], faults: 1, until: 3, ..Config::new("small", calls) };
    vec![
        (M::NoFenceCheck, small(&[DedupesAndAnswers]), FENCE_HOLDS),
        (M::LiveLeaseCheck, small(&[DedupesAndAnswers]), FENCE_HOLDS),
        (M::CheckThenInsert, small(&[Answers]), CALLS_HAVE_OWNERS),
        (M::RevisionNotSeen, small(&[Answers]), EFFECT_ONCE),
        (M::HashNotCompared, Config { clients: &[(0, 1), (1, 1)], ..small(&[Dedupes]) }, NO_SHARING),
        (M::NotAnnounced, small(&[Answers]), EFFECT_ONCE),
        (M::NotAppliedIsFinal, small(&[Answers]), EFFECT_ONCE),
        (M::RerunUnknown, small(&[Neither]), EFFECT_ONCE),
        (M::KeyFromRowId, Config { fails_over: true, ..small(&[Dedupes]) }, EFFECT_ONCE),
        (M::CleanupByAge, Config { sweeps: true, window: 1, ..small(&[Answers]) }, EFFECT_ONCE),
        (M::NoTakeOver, small(&[Dedupes]), ANSWERED),
        (M::NoRetentionBound, Config { retention: 2, ..small(&[Dedupes]) }, EFFECT_ONCE),
        (M::NoWorkerForAbandoned, small(&[Answers]), SETTLES),
        (M::SettledWithoutRows, small(&[Answers]), ROW_WHEN_COMPLETED),
    ]
}

/// The promises that the list above does not look at.
#[rustfmt::skip] // a table
pub(crate) fn further() -> Vec<(Mutation, Config, &'static str)> {
    use Kind::{Answers, DedupesAndAnswers};
    let small = |calls| Config { clients: &[(0, 2)], faults: 1, until: 3, ..Config::new("small", calls) };
    vec![
        (Mutation::NoFenceCheck, Config { clients: &[(0, 1), (0, 1)], until: 2, ..small(&[DedupesAndAnswers]) }, ANSWER_STAYS),
        (Mutation::UnknownIsApplied, small(&[Answers]), APPLIED_IS_TRUE),
    ]
}

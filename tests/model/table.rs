//! The configurations, and what each has to show.

use crate::config::{Config, Kind};
use crate::rig::Reached;

/// A configuration, and the steps without which it would show nothing.
pub(crate) type Row = (Config, &'static [Reached]);

#[rustfmt::skip] // a table
pub(crate) fn configurations() -> Vec<Row> {
    use Kind::{Answers, Dedupes, DedupesAndAnswers, Neither};
    use Reached as R;
    vec![
        (Config { until: 4, faults: 1, ..Config::new("dedupes, can be asked", &[DedupesAndAnswers, DedupesAndAnswers]) },
            &[R::TakeOver, R::Retry, R::Release, R::LateWriteRefused, R::LateArrival, R::Settled]),
        (Config { clients: &[(0, 2), (1, 1)], faults: 1, until: 3, ..Config::new("two commands on one key", &[DedupesAndAnswers, Answers]) },
            &[R::Mismatch, R::Replay, R::TakeOver]),
        (Config { until: 4, faults: 1, ..Config::new("dedupes, cannot be asked", &[Dedupes, Dedupes]) },
            &[R::TakeOver, R::Retry, R::Release]),
        (Config { until: 4, faults: 1, ..Config::new("can only be asked", &[Answers, Answers]) },
            &[R::Strand, R::Ask, R::Settled, R::Resumed, R::Withdrawn, R::StillUnknown]),
        (Config { until: 4, faults: 1, ..Config::new("neither", &[Neither, Neither]) },
            &[R::Strand, R::Park]),
        (Config { goes_on: true, until: 4, faults: 1, ..Config::new("work that goes on without an answer", &[Dedupes, Answers]) },
            &[R::Strand, R::Ask]),
        (Config { declines: true, until: 4, faults: 1, ..Config::new("may decline", &[DedupesAndAnswers, Answers]) },
            &[R::SettledRefusal, R::Replay]),
        (Config { retention: 3, faults: 1, until: 5, ..Config::new("forgets, can be asked", &[DedupesAndAnswers]) },
            &[R::TakeOver, R::Ask, R::Forgotten]),
        (Config { retention: 3, faults: 1, until: 5, ..Config::new("forgets, cannot be asked", &[Dedupes]) },
            &[R::TakeOver, R::Park]),
        (Config { sweeps: true, window: 1, metadata: 1, clients: &[(0, 2)], faults: 1, until: 5, ..Config::new("expiry and use again", &[Answers]) },
            &[R::Expired]),
        (Config { sweeps: true, window: 1, metadata: 1, clients: &[(0, 2), (1, 2)], faults: 1, ..Config::new("purge and use by another command", &[]) },
            &[R::Expired, R::Purged, R::BusinessRowOfAnother]),
        (Config { fails_over: true, clients: &[(0, 1), (0, 1)], faults: 1, until: 3, ..Config::new("a failover that loses writes", &[DedupesAndAnswers]) },
            &[R::FailedOver]),
        (Config { fails_over: true, clients: &[(0, 1), (1, 1)], faults: 1, until: 2, retention: 3, ..Config::new("a failover, and another command", &[Dedupes]) },
            &[R::FailedOver]),
        (Config { clients: &[(0, 1)], slots: 1, faults: 3, ..Config::new("abandoned clients", &[DedupesAndAnswers, Answers]) },
            &[R::Release, R::Strand, R::Settled]),
        (Config { clients: &[(0, 1), (0, 1), (1, 1)], slots: 3, faults: 1, until: 3, ..Config::new("three clients", &[Answers]) },
            &[R::Mismatch, R::TakeOver]),
    ]
}

//! What one operation has otherwise than the others.

use std::time::Duration;

use idem_core::{Replay, Rules};

/// The options of one operation; see [`IdemBuilder::operation`](crate::IdemBuilder::operation). What is not said here
/// is as it is for all.
#[must_use = "options do nothing until they are given back to the builder"]
#[derive(Debug, Clone, Default)]
pub struct Operation {
    lease: Option<Duration>,
    max_run: Option<Duration>,
    window: Option<Duration>,
    body_retention: Option<Duration>,
    metadata_retention: Option<Duration>,
    backoff: Option<(Duration, Duration)>,
    body_cap: Option<usize>,
    patience: Option<Duration>,
    grace: Option<Duration>,
    ask_lease: Option<Duration>,
    ask_cap: Option<Duration>,
    horizon: Option<Duration>,
    ask_parked: Option<Duration>,
    replay: Option<Replay>,
    optional_key: bool,
}

impl Operation {
    /// See [`Rules::lease`].
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// See [`Rules::max_run`].
    pub fn max_run(self, max_run: Duration) -> Self {
        Self { max_run: Some(max_run), ..self }
    }

    /// See [`Rules::window`].
    pub fn window(self, window: Duration) -> Self {
        Self { window: Some(window), ..self }
    }

    /// See [`Rules::body_retention`].
    pub fn body_retention(self, span: Duration) -> Self {
        Self { body_retention: Some(span), ..self }
    }

    /// See [`Rules::metadata_retention`].
    pub fn metadata_retention(self, span: Duration) -> Self {
        Self { metadata_retention: Some(span), ..self }
    }

    /// The wait before the second attempt, and the longest one; see [`Rules::backoff`] and [`Rules::backoff_cap`].
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Some((first, longest)), ..self }
    }

    /// See [`Rules::body_cap`].
    pub fn body_cap(self, bytes: usize) -> Self {
        Self { body_cap: Some(bytes), ..self }
    }

    /// See [`Rules::patience`].
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// See [`Rules::grace`].
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// See [`Rules::ask_lease`].
    pub fn ask_lease(self, lease: Duration) -> Self {
        Self { ask_lease: Some(lease), ..self }
    }

    /// See [`Rules::ask_cap`].
    pub fn ask_cap(self, longest: Duration) -> Self {
        Self { ask_cap: Some(longest), ..self }
    }

    /// See [`Rules::horizon`].
    pub fn horizon(self, horizon: Duration) -> Self {
        Self { horizon: Some(horizon), ..self }
    }

    /// See [`Rules::ask_parked`].
    pub fn ask_parked(self, span: Duration) -> Self {
        Self { ask_parked: Some(span), ..self }
    }

    /// What a later request gets of a success: the stored answer, or one that the application writes anew
    /// ([`Idempotent::rebuilt_by`](crate::Idempotent::rebuilt_by)). They are two promises of an API: the same answer,
    /// or the same resource. A record that was kept under one promise keeps it: switching an operation changes nothing
    /// for keys that were used before, except that an answer which was never kept can no longer be written where the
    /// operation has gone back to [`Replay::Stored`] (`IDEMPOTENCY_RESPONSE_NOT_KEPT`).
    pub fn replay(self, replay: Replay) -> Self {
        Self { replay: Some(replay), ..self }
    }

    /// Takes requests without a key. **Such a request is not protected**: it runs each time it is sent, nothing is
    /// stored, its derived ids and downstream keys are random, and its calls run unannounced. A request with a key is
    /// as safe as ever, and a key that cannot be read is still refused.
    pub fn optional_key(self) -> Self {
        Self { optional_key: true, ..self }
    }

    pub(crate) fn takes_no_key(&self) -> bool {
        self.optional_key
    }

    pub(crate) fn over(&self, all: &Rules) -> Rules {
        let mut rules = all.clone();
        set(&mut rules.lease, self.lease);
        set(&mut rules.max_run, self.max_run);
        set(&mut rules.window, self.window);
        set(&mut rules.body_retention, self.body_retention);
        set(&mut rules.metadata_retention, self.metadata_retention);
        set(&mut rules.backoff, self.backoff.map(|(first, _)| first));
        set(&mut rules.backoff_cap, self.backoff.map(|(_, longest)| longest));
        set(&mut rules.body_cap, self.body_cap);
        set(&mut rules.patience, self.patience);
        set(&mut rules.grace, self.grace);
        set(&mut rules.ask_lease, self.ask_lease);
        set(&mut rules.ask_cap, self.ask_cap);
        set(&mut rules.horizon, self.horizon);
        set(&mut rules.ask_parked, self.ask_parked);
        set(&mut rules.replay, self.replay);
        rules
    }
}

fn set<T>(rule: &mut T, own: Option<T>) {
    if let Some(own) = own {
        *rule = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A span that nothing else has.
    fn span(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_option_changes_the_rule_of_its_name_and_no_other() {
        let all = Rules { lease: span(91), window: span(92), body_cap: 93, ..Rules::default() };
        assert_eq!(Operation::default().over(&all), all);
        let own = Operation::default()
            .lease(span(1))
            .max_run(span(2))
            .window(span(3))
            .body_retention(span(4))
            .metadata_retention(span(5))
            .backoff(span(6), span(7))
            .body_cap(8)
            .patience(span(9))
            .replay(Replay::Rebuilt { schema_version: 10 })
            .grace(span(11))
            .ask_lease(span(12))
            .ask_cap(span(13))
            .horizon(span(14))
            .ask_parked(span(15));
        let expected = Rules {
            lease: span(1),
            max_run: span(2),
            window: span(3),
            body_retention: span(4),
            metadata_retention: span(5),
            backoff: span(6),
            backoff_cap: span(7),
            body_cap: 8,
            patience: span(9),
            replay: Replay::Rebuilt { schema_version: 10 },
            grace: span(11),
            ask_lease: span(12),
            ask_cap: span(13),
            horizon: span(14),
            ask_parked: span(15),
        };
        assert_eq!(own.over(&all), expected);
        assert_eq!(Operation::default().optional_key().over(&all), all);
    }
}

//! How a service is set up, as options of the program.

use std::num::ParseIntError;
use std::time::Duration;

use clap::{Args, Parser};
use idem_core::worker::WorkerOptions;
use idem_core::{CallClass, Rules};

use crate::provider::{Kind, RETENTION};

/// Which provider the service has, and how patient it is. The spans are for watching recovery without waiting for it; in
/// earnest nobody should be as quick.
#[derive(Debug, Clone, Args)]
pub struct Setup {
    /// What the provider promises of a second request.
    #[arg(long, value_enum, default_value_t)]
    pub provider: Kind,

    /// How long nobody may take over from an owner that gives no sign of life.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "30000")]
    pub lease: Duration,

    /// How long the worker leaves an abandoned record to its client.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "60000")]
    pub grace: Duration,

    /// How often the worker looks for records that nobody comes for.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "5000")]
    pub look_every: Duration,

    /// The wait before the second attempt, and before the second question to the provider.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "1000")]
    pub backoff: Duration,

    /// How long the service waits for the provider's answer.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "10000")]
    pub time_out: Duration,

    /// After that long nothing that the provider does not know of can arrive there any more.
    #[arg(long, value_name = "MILLISECONDS", value_parser = millis, default_value = "60000")]
    pub quiescence: Duration,
}

impl Setup {
    /// What idem is told of the provider.
    pub fn class(&self) -> CallClass {
        match self.provider {
            Kind::Dedupes => CallClass::Dedupes { retention: RETENTION },
            Kind::QueryOnly => CallClass::QueryOnly { quiescence: self.quiescence },
            Kind::Neither => CallClass::Neither,
        }
    }

    /// The spans of every operation.
    pub fn rules(&self) -> Rules {
        Rules { lease: self.lease, grace: self.grace, backoff: self.backoff, ..Rules::default() }
    }

    /// How often the worker's loops run.
    pub fn worker(&self) -> WorkerOptions {
        WorkerOptions { recover_every: self.look_every, ..WorkerOptions::default() }
    }

    /// The same as the program's options.
    pub fn arguments(&self) -> Vec<String> {
        let spans = [
            ("lease", self.lease),
            ("grace", self.grace),
            ("look-every", self.look_every),
            ("backoff", self.backoff),
            ("time-out", self.time_out),
            ("quiescence", self.quiescence),
        ];
        let kind = clap::ValueEnum::to_possible_value(&self.provider).expect("no kind is hidden");
        let spans = spans.map(|(name, span)| format!("--{name}={}", span.as_millis()));
        std::iter::once(format!("--provider={}", kind.get_name())).chain(spans).collect()
    }
}

/// The program's own defaults: a provider that dedupes, and idem's spans.
impl Default for Setup {
    fn default() -> Self {
        #[derive(Parser)]
        struct Program {
            #[command(flatten)]
            setup: Setup,
        }
        Program::parse_from(["payments"]).setup
    }
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_idems_own() {
        let setup = Setup::default();
        assert_eq!(setup.rules(), Rules::default());
        assert_eq!(setup.worker().recover_every, WorkerOptions::default().recover_every);
    }
}

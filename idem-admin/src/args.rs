//! The command line.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Parser, Subcommand, ValueEnum};
use idem_core::operator::{Search, Standing};
use idem_core::{IdempotencyKey, Scope, Tenant};
use jiff::{SignedDuration, Timestamp};

/// Looks after the records of idem: those that are not settled, and above all those that are parked, since only a person can
/// help there. Answers, outcomes and checkpoints are shown only where `--bodies` asks for them.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    /// `postgres://…` or `sqlite:…`. Better in the environment: whoever may list processes sees an argument, and the
    /// password in it.
    #[arg(long, global = true, env = "IDEM_DATABASE_URL", hide_env_values = true)]
    pub(crate) database: Option<String>,

    /// One JSON value instead of tables; errors too, on standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Records that are not settled, those first that somebody has to look at first.
    List(List),
    /// All that is known of one record: its calls with their keys, what was learned of them, what people did.
    Inspect(Inspect),
    /// Ends a parked record as you found out that it ended.
    Resolve(Resolve),
    /// Has the providers of a parked record asked by the next round of a worker.
    AskAgain(AskAgain),
    /// The same verdict on many parked records: after an outage whose end is known.
    ResolveAll(ResolveAll),
    /// `ask-again` for many parked records: after an outage in which questions got no answer.
    AskAgainAll(AskAgainAll),
    /// Brings idem's tables up to date, or makes them.
    Migrate,
    /// Whether the database is in order: schema, settings, signs of life, and how much is not settled.
    Check(Check),
}

/// One record.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Whose record.
    tenant: Tenant,
    /// Of which operation.
    operation: String,
    /// The client's key.
    key: IdempotencyKey,
}

impl Which {
    pub(crate) fn scope(&self) -> Scope {
        Scope::new(self.tenant.clone(), &self.operation, self.key.clone())
    }
}

/// Which records. Everything that is said must hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Of this operation.
    #[arg(long)]
    operation: Option<String>,

    /// Of this tenant.
    #[arg(long)]
    tenant: Option<String>,

    /// The key was first seen at least that long ago, as `90s`, `15m` or `2h`.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "0s")]
    older_than: Duration,

    /// The open call was announced then or later, as `2026-05-03T14:00:00Z`.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    opened_from: Option<SystemTime>,

    /// The open call was announced before then.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    opened_until: Option<SystemTime>,
}

impl Filter {
    pub(crate) fn search(&self, standing: Option<Standing>, call: Option<&str>) -> Search {
        Search {
            standing,
            tenant: self.tenant.clone(),
            operation: self.operation.clone(),
            call: call.map(str::to_owned),
            opened_from: self.opened_from,
            opened_until: self.opened_until,
            older_than: self.older_than,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those that stand so.
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,

    /// Only those with an open call of that name.
    #[arg(long)]
    pub(crate) call: Option<String>,

    #[command(flatten)]
    pub(crate) filter: Filter,

    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,

    /// The next page: what the page before ended with.
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,
}

/// How a record stands that is not settled.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum State {
    /// Only a person can help.
    Parked,
    /// Nobody knows how it ended; its providers are asked.
    Unknown,
    /// Somebody runs it, or did when the lease was last renewed.
    InProgress,
    /// It failed with a call left open, and waits for its client.
    Retryable,
}

impl From<State> for Standing {
    fn from(state: State) -> Self {
        match state {
            State::Parked => Self::Parked,
            State::Unknown => Self::Unknown,
            State::InProgress => Self::InProgress,
            State::Retryable => Self::Retryable,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Shows answers, outcomes and checkpoints too. They are your clients' data.
    #[arg(long)]
    pub(crate) bodies: bool,
}

/// Who decides, and why; both stand in the audit for ever.
#[derive(Debug, clap::Args)]
pub(crate) struct Because {
    /// Who.
    #[arg(long, env = "IDEM_ACTOR")]
    pub(crate) actor: String,

    /// Why: where it was seen, and by whom.
    #[arg(long)]
    pub(crate) reason: String,
}

/// What you found out.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    /// How the command ended.
    #[arg(long = "as", value_enum, value_name = "END")]
    pub(crate) end: End,

    /// The answer's status: 2xx or 3xx for `completed`, 4xx or 5xx for `refused`.
    #[arg(long, value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) status: Option<u16>,

    /// A header of the answer, as `name: value`.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,

    /// The answer's body. In a file, since an argument is seen by whoever may list processes.
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,

    /// This call happened, and came to this JSON: what the work itself would have kept.
    #[arg(long, value_name = "CALL=JSON")]
    pub(crate) applied: Vec<String>,

    /// This call was refused for good; the status of the answer that the work gives for it. Wrong, its client makes it
    /// anew.
    #[arg(long, value_name = "CALL=STATUS")]
    pub(crate) rejected: Vec<String>,

    /// This call never happened, and cannot arrive any more. Wrong, it is made twice.
    #[arg(long, value_name = "CALL")]
    pub(crate) not_made: Vec<String>,

    /// What is said of this call holds though the evidence denies it; the audit says so.
    #[arg(long, value_name = "CALL")]
    pub(crate) against_evidence: Vec<String>,

    /// What the command made, where its record does not say so yet.
    #[arg(long, value_name = "TYPE=ID")]
    pub(crate) resource: Option<String>,

    /// How long the answer is replayed: the operation's window.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "24h")]
    pub(crate) window: Duration,

    /// How long it is known after that what the key meant: the operation's metadata retention.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "720h")]
    pub(crate) metadata_retention: Duration,
}

/// How a command ended, as a person found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    /// It was carried out, and this is its answer from now on.
    Completed,
    /// It was refused for good, and this is its answer from now on. Wrong, the client pays anew under another key; needs
    /// `--yes`.
    Refused,
    /// The client's next attempt goes on, with what is said of each open call.
    Resume,
    /// No open call ever happened: the next attempt makes them. Wrong, it makes an effect twice; needs `--yes`.
    NeverHappened,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resolve {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    #[command(flatten)]
    pub(crate) because: Because,

    /// Only while the record has this fence: the one that `inspect` showed.
    #[arg(long)]
    pub(crate) fence: Option<u64>,

    /// Confirms what may make an effect twice.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AskAgain {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) because: Because,
}

/// Many parked records, and how far it goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Bulk {
    /// With an open call of that name. Several calls are several verdicts.
    #[arg(long)]
    pub(crate) call: String,

    #[command(flatten)]
    pub(crate) filter: Filter,

    /// Shows the records that it would be, and changes nothing but the file of `--list`.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,

    /// Confirms it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// The dry run writes into this file which records it showed, and how they stood; with `--yes` it is these and no
    /// others, and only those that still stand so.
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,

    /// At most so many at a time.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResolveAll {
    #[command(flatten)]
    pub(crate) bulk: Bulk,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AskAgainAll {
    #[command(flatten)]
    pub(crate) bulk: Bulk,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// No worker's sign of life for longer than that is not in order.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "10m")]
    pub(crate) silence: Duration,
}

fn span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    span.try_into().map_err(|_| "it must not be negative".to_owned())
}

fn instant(text: &str) -> Result<SystemTime, String> {
    text.parse().map(|instant: Timestamp| instant.into()).map_err(|error| error.to_string())
}

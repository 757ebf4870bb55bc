//! The store's statements as scripts of pgbench.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use idem_cluster::{Database, program};

use super::{ANSWER, CALL, CALLERS_KEYS, DAY, Failed, Keys, LEASE, OPERATION, OUTCOME, TENANT};

/// Scripts with their weights.
pub(super) struct Scripts {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, u32)>,
    url: Vec<String>,
}

/// What one run did.
pub(super) struct Ran {
    pub(super) a_second: f64,
    pub(super) transactions: i64,
}

impl Scripts {
    pub(super) fn new(database: &Database) -> Result<Self, Failed> {
        let options = database.options();
        let url = ["-h", options.get_host(), "-p", &options.get_port().to_string(), "-U", options.get_username()]
            .map(str::to_owned);
        let url = url.into_iter().chain([database.name().to_owned()]).collect();
        Ok(Self { folder: tempfile::tempdir()?, files: Vec::new(), url })
    }

    /// Adds a script of these statements, each a transaction of its own.
    pub(super) fn add(&mut self, weight: u32, statements: &[String]) -> Result<(), Failed> {
        let mut text =
            format!("\\set n :n + 1\n\\set key :base + :client_id * {CALLERS_KEYS} + :n\n\\set old random(0, 999)\n");
        for statement in statements {
            writeln!(text, "{statement};")?;
        }
        let file = self.folder.path().join(format!("{}.sql", self.files.len()));
        std::fs::write(&file, text)?;
        self.files.push((file, weight));
        Ok(())
    }

    /// One turn of a second.
    pub(super) fn run(&self, callers: usize) -> Result<Ran, Failed> {
        let mut command = Command::new(program("pgbench"));
        command.args(["-n", "-M", "prepared", "-T", "1", "-j", "2", "-c", &callers.to_string()]);
        for (file, weight) in &self.files {
            command.arg("-f").arg(format!("{}@{weight}", file.display()));
        }
        for (name, value) in variables() {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        let ran = command.args(&self.url).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&ran.stdout);
        let after = |label: &str| {
            text.lines().find_map(|line| Some(line.strip_prefix(label)?.split(['/', ' ']).next()?.to_owned()))
        };
        let failed = || format!("pgbench: {text}\n{}", String::from_utf8_lossy(&ran.stderr));
        if !ran.status.success() || after("number of failed transactions: ").is_some_and(|failed| failed != "0") {
            return Err(failed().into());
        }
        let a_second = after("tps = ").ok_or_else(failed)?.parse()?;
        let transactions = after("number of transactions actually processed: ").ok_or_else(failed)?.parse()?;
        Ok(Ran { a_second, transactions })
    }
}

fn variables() -> Vec<(&'static str, String)> {
    let hex = |bytes: &[u8]| bytes.iter().fold("\\x".to_owned(), |hex, byte| format!("{hex}{byte:02x}"));
    vec![
        ("n", "0".to_owned()),
        ("base", Keys::next().0.to_string()),
        ("tenant", TENANT.to_owned()),
        ("operation", OPERATION.to_owned()),
        ("hash", hex(&[7; 32])),
        ("token", "11111111-1111-4111-8111-111111111111".to_owned()),
        ("lease", LEASE.as_micros().to_string()),
        ("day", DAY.as_micros().to_string()),
        ("month", (30 * DAY).as_micros().to_string()),
        ("call", CALL.to_owned()),
        ("outcome", hex(OUTCOME)),
        ("body", hex(&[b'x'; ANSWER])),
    ]
}

/// A statement with what idem binds, as idem types it. Where idem binds NULL, so does this, by a constant: pgbench has no
/// parameter for it.
pub(super) fn with_parameters(statement: &str, parameters: &[&str]) -> String {
    let mut text = statement.to_owned();
    // From the last on, since $1 begins $10.
    for (number, parameter) in parameters.iter().enumerate().rev() {
        text = text.replace(&format!("${}", number + 1), &format!("({parameter})"));
    }
    text
}

pub(super) const KEY: [&str; 3] = [":tenant::text", ":operation::text", ":key::text"];

/// After the key.
pub(super) const CLAIM: [&str; 5] = [":hash::bytea", "1::bigint", "1::bigint", ":token::uuid", ":lease::bigint"];

pub(super) const STEP_WITH_CALLS: [&str; 18] = [
    "1::bigint",
    ":token::uuid",
    ":lease::bigint",
    "true",
    "NULL::text",
    "NULL::text",
    "NULL::text",
    "NULL::bytea",
    "NULL::bigint",
    "'{}'::text[]",
    "'{}'::text[]",
    "'{}'::bytea[]",
    ":call::text",
    "'dedupes'::text",
    ":day::bigint",
    "(:call::text || '_' || :key::text)",
    "NULL::text",
    "NULL::bytea",
];

macro_rules! end {
    ($($more:literal),*) => {
        [
            "1::bigint", ":token::uuid", "'in_progress'::text", "'completed'::text", "201::bigint", "''::bytea", ":body::bytea",
            "NULL::bytea", ":day::bigint", ":day::bigint", ":month::bigint", "NULL::bigint", "NULL::text", "NULL::text", "false",
            "false", $($more),*
        ]
    };
}

pub(super) const END: [&str; 17] = end!("'{}'::text[]");

pub(super) const END_WITH_MORE: [&str; 19] =
    end!("ARRAY[:call::text]", "'{applied}'::text[]", "ARRAY[:outcome::bytea]");

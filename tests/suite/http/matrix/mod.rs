//! The behaviour of a request whose client, layers or process do not behave: the table of `docs/behaviour.md`, which is
//! what is expected here.

mod hangup;
mod layers;
mod panics;
mod shutdown;

use std::collections::BTreeSet;
use std::fs;

/// What was seen of one case on one version of HTTP.
struct Row {
    case: String,
    http: u8,
    /// What the client got for each of its requests.
    answers: String,
    /// The record's state, at each moment that is looked at.
    records: Vec<&'static str>,
    /// How often the work had run by then; at a process's end, how often it had ended.
    runs: Vec<usize>,
}

impl Row {
    /// As the page writes it.
    fn line(&self, http: &str) -> String {
        let runs: Vec<_> = self.runs.iter().map(usize::to_string).collect();
        let (answers, records, runs) = (&self.answers, self.records.join(", then "), runs.join(", then "));
        format!("| {} | {http} | {answers} | {records} | {runs} |", self.case)
    }
}

fn answer(status: u16, replayed: bool) -> String {
    if replayed { format!("{status} replayed") } else { status.to_string() }
}

/// The rows as lines; those that are the same on both versions of HTTP are one.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        let also = |http| rows.iter().any(|other| other.http == http && other.line("") == row.line(""));
        let line = row.line(match (also(1), also(2)) {
            (true, true) => "1.1, 2",
            (true, false) => "1.1",
            _ => "2",
        });
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn nothing_that_happens_around_a_request_changes_what_its_work_does_and_what_is_kept() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut rows = runtime.block_on(async {
        let mut rows = hangup::rows().await;
        rows.extend(layers::rows().await);
        rows.extend(panics::rows().await);
        rows
    });
    rows.extend(shutdown::rows());
    let seen = lines(&rows);
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/behaviour.md")).unwrap();
    let told: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).skip(2).map(str::to_owned).collect();
    let (seen_set, told_set): (BTreeSet<_>, BTreeSet<_>) = (seen.iter().collect(), told.iter().collect());
    let differ: Vec<_> = seen_set
        .difference(&told_set)
        .map(|line| format!("seen: {line}"))
        .chain(told_set.difference(&seen_set).map(|line| format!("told: {line}")))
        .collect();
    assert!(differ.is_empty(), "docs/behaviour.md tells otherwise:\n{}", differ.join("\n"));
    assert_eq!(seen.len(), told.len(), "a row stands twice");
}

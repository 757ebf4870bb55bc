//! What a contract's file holds.

use super::page::Sample;
use crate::contract::{self, Contract};

/// A committed file.
pub(super) enum Committed {
    /// There is none.
    Missing,
    /// It has a `drift:` section.
    Drifted(String),
    /// It is not the text of a contract and its samples.
    Unreadable(String),
    /// The contract that records were written by.
    Read(Box<File>),
}

pub(super) struct File {
    text: String,
    pub(super) contract: Contract,
    pub(super) samples: Vec<Sample>,
}

impl File {
    /// The whole text, without insta's heading.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Committed {
    /// Reads a file of insta's: its own heading between two lines of `---`, then the text.
    pub(super) fn read(content: &str) -> Self {
        let content = content.replace("\r\n", "\n");
        let text = content.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        let text = text.map_or(&*content, |(_, text)| text).trim_end();
        if text.trim_start().starts_with(DRIFT) {
            return Self::Drifted(text.to_owned());
        }
        match read(text) {
            Ok((contract, samples)) => Self::Read(Box::new(File { text: text.to_owned(), contract, samples })),
            Err(reason) => Self::Unreadable(reason),
        }
    }
}

fn read(text: &str) -> Result<(Contract, Vec<Sample>), String> {
    let mut parts = text.split("\n\nsample ");
    let contract = parts.next().unwrap_or_default();
    let contract = contract::parse(contract).map_err(|error| error.to_string())?;
    let sample = |part: &str| {
        let mut lines = part.lines();
        let sample = Sample {
            label: lines.next()?.to_owned(),
            preimage: lines.next()?.strip_prefix("  preimage: ")?.to_owned(),
            hash: lines.next()?.strip_prefix("  hash: ")?.to_owned(),
        };
        lines.next().is_none().then_some(sample)
    };
    let samples =
        parts.map(|part| sample(part).ok_or_else(|| format!("no sample: {}", part.lines().next().unwrap_or_default())));
    Ok((contract, samples.collect::<Result<_, _>>()?))
}

/// What a section of a drift begins with.
pub(super) const DRIFT: &str = "drift:";

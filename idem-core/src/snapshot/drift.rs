//! What is wrong with a committed file, and the way out.

use std::fmt::{self, Write};

use super::file::{Committed, DRIFT, File};
use super::page::{Page, Sample};
use super::place::Place;
use crate::contract::{Change, Contract};

/// How the code differs from a committed file.
pub(super) struct Finding {
    file: String,
    version: u32,
    kind: Kind,
    changes: Vec<Change>,
    samples: Vec<Moved>,
}

enum Kind {
    Missing {
        renamed: Option<String>,
    },
    AcceptedDrift,
    Unreadable(String),
    /// Hashes moved, by the contract or by the samples.
    Drift,
    /// The text differs, and hashes stay.
    Additive,
}

/// A sample of the file that is another one now, or none.
struct Moved {
    was: Sample,
    is: Option<Sample>,
}

impl Finding {
    /// `None`: the file is as it should be.
    pub(super) fn of(page: &Page, committed: &Committed, place: &Place) -> Option<Self> {
        let version = page.contract.version();
        let (mut changes, mut samples) = (Vec::new(), Vec::new());
        let kind = match committed {
            Committed::Missing => Kind::Missing { renamed: renamed(page, place) },
            Committed::Drifted(_) => Kind::AcceptedDrift,
            Committed::Unreadable(reason) => Kind::Unreadable(reason.clone()),
            Committed::Read(file) if file.text() == page.to_string().trim_end() => return None,
            Committed::Read(file) => {
                changes = Contract::diff(&file.contract, &page.contract);
                samples = moved(file, page);
                let drift = changes.iter().any(Change::is_breaking) || !samples.is_empty();
                if drift { Kind::Drift } else { Kind::Additive }
            }
        };
        Some(Self { file: place.file(version).display().to_string(), version, kind, changes, samples })
    }

    /// What stands above a text that must not be committed as it is.
    pub(super) fn section(&self) -> String {
        match &self.kind {
            Kind::Missing { .. } | Kind::AcceptedDrift | Kind::Additive => String::new(),
            Kind::Unreadable(_) | Kind::Drift => {
                let mut section = String::new();
                for line in self.told().lines() {
                    let line = if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
                    section += &line;
                }
                format!("{DRIFT}\n{section}\n")
            }
        }
    }

    /// The differences and the way out.
    fn told(&self) -> String {
        let mut told = String::new();
        let mut tell = |line: &dyn fmt::Display| writeln!(told, "{line}").expect("a String takes everything");
        for change in &self.changes {
            tell(change);
        }
        for Moved { was, is } in &self.samples {
            match is {
                Some(is) => {
                    tell(&format_args!("sample {} has another hash", was.label));
                    tell(&format_args!("  was: {}\n  is:  {}", was.preimage, is.preimage));
                }
                None => tell(&format_args!("sample {} is gone\n  was: {}", was.label, was.preimage)),
            }
        }
        told += &self.way_out();
        told
    }

    fn way_out(&self) -> String {
        let Self { version, .. } = self;
        let next = version.saturating_add(1);
        match &self.kind {
            Kind::Missing { renamed: None } => {
                "insta has written it, if it may: look at it, and commit it.".to_owned()
            }
            Kind::Missing { renamed: Some(old) } => format!(
                "{old} has the same members under another name. If `operation` was renamed: put the name back, the\n\
                 struct may be called anything. Records are kept under it, and every retry of an old request would run\n\
                 anew. If this is a new operation, accept it."
            ),
            Kind::AcceptedDrift => "Somebody accepted a change that moves hashes. Take the change back and\nrestore the file. Or, if no record of this version is kept anywhere, \
                take the section out of the file by hand."
                .to_owned(),
            Kind::Unreadable(reason) => format!(
                "Nothing tells whether hashes stay: {reason}.\nRestore it."
            ),
            Kind::Additive => "Look at the new text, and commit it.".to_owned(),
            Kind::Drift if self.changes.iter().any(Change::is_breaking) => format!(
                "A retry of a request from before the deploy would be taken for another command, or answered with \
                 another's answer.\nThe way out: take the change back; or give the command `version = {next}` and keep \
                 the rules of version {version}\n(`previous = …`). Only if no record of version {version} is kept \
                 anywhere: accept this text, then take its\n`drift:` section out by hand."
            ),
            Kind::Drift => format!(
                "The contract keeps its hashes, and samples moved all the same. If one was edited or taken away: put it \
                 back, and give\nthe new value a new label; samples may be added, not removed. If not, code that no \
                 contract shows (`with = …`, a\n`Canonical` or `From` of your own) writes the same value otherwise: \
                 take that back, or give the command\n`version = {next}` and keep the rules of version {version}."
            ),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = match self.kind {
            Kind::Missing { .. } => "is missing",
            Kind::AcceptedDrift => "has a `drift:` section",
            Kind::Unreadable(_) => "cannot be read",
            Kind::Drift => "and the code disagree, and hashes with them",
            Kind::Additive => "and the code disagree, but hashes stay",
        };
        write!(f, "{} {wrong}\n{}", self.file, self.told())
    }
}

/// A version that has a file and that the code does not keep.
pub(super) fn not_kept(place: &Place, version: u32, own: u32) -> String {
    let file = place.file(version).display().to_string();
    let operation = place.operation();
    if version > own {
        return format!(
            "{file} is of a version that the code does not know\nRecords that `{operation}` wrote by version {version} \
             are answered with 503 IDEMPOTENCY_CONTRACT_UNKNOWN, until a build\nthat knows it is back. Restore \
             `version = {version}`; or delete the file, if it was never deployed or its last record is gone."
        );
    }
    format!(
        "{file} is of a version that the code no longer keeps\nRecords that `{operation}` wrote by version {version} \
         are answered with 409 IDEMPOTENCY_CONTRACT_RETIRED, and a person has to look.\nKeep its rules with `previous \
         = …` or `oldest = {version}` until the last such record is gone; then delete the file."
    )
}

fn moved(file: &File, page: &Page) -> Vec<Moved> {
    let now = |was: &Sample| page.samples.iter().find(|is| is.label == was.label).cloned();
    let pairs = file.samples.iter().map(|was| Moved { was: was.clone(), is: now(was) });
    pairs.filter(|pair| pair.is.as_ref().is_none_or(|is| is.hash != pair.was.hash)).collect()
}

/// The file of a command that is this one but for its name.
fn renamed(page: &Page, place: &Place) -> Option<String> {
    if !place.versions().is_empty() {
        return None;
    }
    let is_same = |file: &File| {
        Contract::diff(&file.contract, &page.contract).iter().all(|change| change.rule().code() == "operation_changed")
    };
    place.others().into_iter().find_map(|(name, committed)| match committed {
        Committed::Read(file) if is_same(&file) => Some(name),
        _ => None,
    })
}

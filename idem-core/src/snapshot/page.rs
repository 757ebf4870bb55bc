//! What a contract's file should hold.

use std::collections::HashSet;
use std::fmt;

use crate::command::IdempotentCommand;
use crate::contract::{Contract, visible};

/// A contract and its samples, as the code has them.
pub(super) struct Page {
    pub(super) contract: Contract,
    pub(super) samples: Vec<Sample>,
}

/// One sample, in the file's spelling: everything that could hide is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) label: String,
    pub(super) preimage: String,
    pub(super) hash: String,
}

impl Page {
    /// By the rules of `version`, with the samples that it can say; `None` where the command does not keep it.
    pub(super) fn of<C: IdempotentCommand>(version: u32, samples: &[(&str, &C)]) -> Option<Self> {
        let contract = C::contract_at(version)?;
        let mut labels = HashSet::new();
        for (label, _) in samples {
            assert!(labels.insert(label), "two samples of `{}` are labelled {label:?}", C::OPERATION);
        }
        let said = samples.iter().filter_map(|(label, sample)| {
            Some(Sample {
                label: visible(&serde_json::Value::from(*label).to_string()),
                preimage: visible(&sample.preimage_at(version)?),
                hash: sample.hash_at(version)?.to_string(),
            })
        });
        Some(Self { contract, samples: said.collect() })
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.contract)?;
        for Sample { label, preimage, hash } in &self.samples {
            write!(f, "\nsample {label}\n  preimage: {preimage}\n  hash: {hash}\n")?;
        }
        Ok(())
    }
}

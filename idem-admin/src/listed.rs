//! What a dry run showed, in a file: a bulk decides on nothing else.

use std::path::Path;

use idem_core::operator::Target;
use idem_core::{Fence, Record, Revision, Scope};
use serde::{Deserialize, Serialize};

use crate::args::Bulk;
use crate::error::AdminError;

/// The file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// The call that the verdict will be about.
    call: String,
    records: Vec<Seen>,
}

/// One record, and how it stood.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    tenant: String,
    operation: String,
    key: String,
    fence: u64,
    revision: u64,
}

impl Listed {
    pub(crate) fn of<'r>(call: &str, records: impl Iterator<Item = &'r Record>) -> Self {
        let seen = |record: &Record| Seen {
            tenant: record.scope.tenant().as_str().to_owned(),
            operation: record.scope.operation().to_owned(),
            key: record.scope.key().as_str().to_owned(),
            fence: record.fence.get(),
            revision: record.revision.get(),
        };
        Self { call: call.to_owned(), records: records.map(seen).collect() }
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), AdminError> {
        std::fs::write(file, serde_json::to_vec_pretty(self)?).map_err(wrong)
    }

    /// Reads what the dry run of the same call wrote.
    pub(crate) fn read(bulk: &Bulk, file: &Path) -> Result<Self, AdminError> {
        let listed: Self = serde_json::from_slice(&std::fs::read(file).map_err(wrong)?).map_err(wrong)?;
        if listed.call != bulk.call {
            return Err(wrong(format!("it is of a dry run about the call `{}`", listed.call)));
        }
        Ok(listed)
    }

    /// The records, each as it stood.
    pub(crate) fn targets(&self) -> Result<Vec<(Scope, Target)>, AdminError> {
        let target = |seen: &Seen| {
            let scope =
                Scope::new(seen.tenant.parse().map_err(wrong)?, &seen.operation, seen.key.parse().map_err(wrong)?);
            let target = Target::from(&scope).at_fence(Fence::from_stored(seen.fence));
            Ok((scope, target.at_revision(Revision::from_stored(seen.revision))))
        };
        self.records.iter().map(target).collect()
    }
}

fn wrong(reason: impl ToString) -> AdminError {
    AdminError::Argument { argument: "--list", reason: reason.to_string() }
}

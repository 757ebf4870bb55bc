//! What both databases' schemas have in common: numbered steps that are never edited.

use sha2::{Digest, Sha256};

use crate::error::Error;

/// One step of the schema. After the first release a step is never edited, and the next one must leave a schema that
/// the release before can work with (columns and tables are added first, and taken away a release later): during a
/// rolling deploy both run on it.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    /// The oldest schema version that a release must know to work with the schema after this step.
    pub(crate) oldest: i64,
    pub(crate) sql: &'static str,
}

/// One row of a database's table of migrations.
pub(crate) struct Applied {
    pub(crate) version: i64,
    pub(crate) oldest: i64,
    pub(crate) checksum: Vec<u8>,
}

impl Migration {
    pub(crate) fn checksum(&self) -> Vec<u8> {
        Sha256::digest(self.sql).to_vec()
    }

    /// The checksum in hexadecimal, for SQL that is printed.
    pub(crate) fn checksum_hex(&self) -> String {
        self.checksum().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The newest applied version, 0 for none.
///
/// # Errors
/// [`Error::SchemaTooNew`], [`Error::SchemaEdited`].
pub(crate) fn newest(known: &[Migration], applied: impl IntoIterator<Item = Applied>) -> Result<i64, Error> {
    let last = known.last().map_or(0, |migration| migration.version);
    let mut newest = 0;
    for Applied { version, oldest, checksum } in applied {
        if oldest > last {
            return Err(Error::SchemaTooNew { found: version, oldest, known: last });
        }
        if known.iter().any(|migration| migration.version == version && migration.checksum() != checksum) {
            return Err(Error::SchemaEdited { version });
        }
        newest = version;
    }
    Ok(newest)
}

/// Refuses a schema that lacks something that this release needs.
///
/// # Errors
/// [`Error::NotMigrated`], [`Error::SchemaTooOld`].
pub(crate) fn complete(known: &[Migration], newest: i64) -> Result<(), Error> {
    let needed = known.last().map_or(0, |migration| migration.version);
    match newest {
        0 => Err(Error::NotMigrated(None)),
        found if found < needed => Err(Error::SchemaTooOld { found, needed }),
        _ => Ok(()),
    }
}

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

/// How far a database's schema has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The newest migration that was applied; 0 for none.
    pub found: i64,
    /// The newest one that this release knows, and needs.
    pub needed: i64,
}

impl SchemaVersion {
    pub(crate) fn of(known: &[Migration], found: i64) -> Self {
        Self { found, needed: known.last().map_or(0, |migration| migration.version) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two releases: the second one added something that the first can work with.
    const STEPS: &[Migration] = &[
        Migration { version: 1, name: "records", oldest: 1, sql: "CREATE TABLE a (b)" },
        Migration { version: 2, name: "more", oldest: 1, sql: "ALTER TABLE a ADD COLUMN c" },
    ];

    fn applied(steps: &[Migration]) -> Vec<Applied> {
        let applied =
            |step: &Migration| Applied { version: step.version, oldest: step.oldest, checksum: step.checksum() };
        steps.iter().map(applied).collect()
    }

    /// What the release that knows `known` says to a database with the steps of `there`.
    fn checked(known: &[Migration], there: Vec<Applied>) -> Result<(), Error> {
        complete(known, newest(known, there)?)
    }

    #[test]
    fn a_schema_that_lacks_a_step_is_too_old() {
        assert!(matches!(checked(STEPS, Vec::new()), Err(Error::NotMigrated(None))));
        let error = checked(STEPS, applied(&STEPS[..1])).unwrap_err();
        assert!(matches!(error, Error::SchemaTooOld { found: 1, needed: 2 }), "{error}");
        assert_eq!((error.code(), error.is_transient()), ("SCHEMA_TOO_OLD", false));
        assert!(checked(STEPS, applied(STEPS)).is_ok());
    }

    #[test]
    fn the_release_before_works_with_a_step_that_allows_it() {
        assert!(checked(&STEPS[..1], applied(STEPS)).is_ok());
        let mut later = applied(STEPS);
        later[1].oldest = 2;
        let error = checked(&STEPS[..1], later).unwrap_err();
        assert!(matches!(error, Error::SchemaTooNew { found: 2, oldest: 2, known: 1 }), "{error}");
    }

    #[test]
    fn each_step_is_compared_with_its_own_text() {
        for edited in 0..2 {
            let mut there = applied(STEPS);
            there[edited].checksum = Vec::new();
            let error = checked(STEPS, there).unwrap_err();
            assert!(matches!(error, Error::SchemaEdited { version } if version == STEPS[edited].version), "{error}");
        }
    }
}

//! A page of records that a worker has to look at, and where the next one begins.

use idem_core::store::Mark;
use idem_core::{Record, transition};
use sqlx::{ColumnIndex, Decode, Row, Type};

use super::{Columns, Tick, records};
use crate::error::Trouble;

/// Where a record stands among the due ones: `due_at` and its key, as they are written in the row, whether the record
/// reads or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) at: i64,
    pub(crate) tenant: String,
    pub(crate) operation: String,
    pub(crate) key: String,
}

impl Place {
    pub(crate) fn of(record: &Record, tick: Tick) -> Option<Self> {
        Some(Self::at(&Mark { at: transition::due_at(record)?, scope: record.scope.clone() }, tick))
    }

    /// Where a page ended.
    pub(crate) fn at(mark: &Mark, tick: Tick) -> Self {
        Self {
            at: tick.count(mark.at),
            tenant: mark.scope.tenant().as_str().to_owned(),
            operation: mark.scope.operation().to_owned(),
            key: mark.scope.key().as_str().to_owned(),
        }
    }

    fn read<R: Row>(row: &R, tick: Tick) -> Result<Self, Trouble>
    where
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
        &'static str: ColumnIndex<R>,
    {
        let columns = Columns { row, tick };
        Ok(Self {
            at: columns.needed("due_at")?,
            tenant: columns.needed("tenant_id")?,
            operation: columns.needed("operation_name")?,
            key: columns.needed("idempotency_key")?,
        })
    }
}

/// Reads a page of due records, as [`records`] does, with `due_at` in each row; gives them, how many records the page
/// has, and the place of its last one. A record that does not read is logged and left out: it must not hide the others.
///
/// # Errors
/// A place that does not read: the next page cannot begin after it.
pub(crate) fn due_page<R: Row>(rows: &[R], tick: Tick) -> Result<(Vec<Record>, usize, Option<Place>), Trouble>
where
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    &'static str: ColumnIndex<R>,
{
    let (mut readable, mut number, mut last) = (Vec::new(), 0, None);
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let place = Place::read(first, tick)?;
        let same = |row: &&R| matches!(Place::read(*row, tick), Ok(other) if other == place);
        let (record, others) = rest.split_at(rest.iter().take_while(same).count());
        match records(record, tick) {
            Ok(record) => readable.extend(record),
            Err(Trouble::Row(column)) => {
                let Place { tenant, operation, key, .. } = &place;
                tracing::error!(tenant, operation, key, column, "a due record cannot be read: it is passed over");
            }
            Err(trouble) => return Err(trouble),
        }
        (number, last, rest) = (number + 1, Some(place), others);
    }
    Ok((readable, number, last))
}

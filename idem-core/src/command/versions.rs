//! Older versions of a command: what the derive makes of `oldest`, `previous` and `writes`.

use super::{IdempotentCommand, write_envelope};
use crate::canonical::Sink;
use crate::contract::Contract;

/// What generated code calls.
#[doc(hidden)]
pub mod __private {
    pub use super::{Alone, Lineage, assert_lineage, contract_at, keeps, write_at};
}

/// The versions that a command's own fields say, and the frozen struct that says the ones before.
pub trait Lineage<C: IdempotentCommand>: Sized {
    /// Whether the frozen structs keep the version.
    fn keeps(version: u32) -> bool;

    /// Writes the command by the rules of a frozen struct.
    fn write_at<S: Sink + ?Sized>(command: &C, version: u32, sink: &mut S) -> bool;

    /// The contract of a frozen struct.
    fn contract_at(version: u32) -> Option<Contract>;
}

/// No frozen struct.
#[derive(Debug)]
pub enum Alone {}

impl<C: IdempotentCommand> Lineage<C> for Alone {
    fn keeps(_: u32) -> bool {
        false
    }

    fn write_at<S: Sink + ?Sized>(_: &C, _: u32, _: &mut S) -> bool {
        false
    }

    fn contract_at(_: u32) -> Option<Contract> {
        None
    }
}

impl<C, Old> Lineage<C> for (Old,)
where
    C: IdempotentCommand + From<Old>,
    Old: IdempotentCommand + for<'c> TryFrom<&'c C>,
{
    fn keeps(version: u32) -> bool {
        Old::keeps(version)
    }

    fn write_at<S: Sink + ?Sized>(command: &C, version: u32, sink: &mut S) -> bool {
        let Ok(old) = Old::try_from(command) else { return false };
        // Written before the way back consumes it: most commands of old records can be said.
        let mut text = Vec::new();
        if !old.write_at(version, &mut text as &mut dyn Sink) {
            return false;
        }
        if !is_one(command, &C::from(old)) {
            return false;
        }
        sink.put(&text);
        true
    }

    fn contract_at(version: u32) -> Option<Contract> {
        Old::contract_at(version)
    }
}

/// Whether two commands are one by today's rules, fields that are only kept for older versions included: what the old
/// rules tell apart must come back as well.
fn is_one<C: IdempotentCommand>(command: &C, back: &C) -> bool {
    let text = |command: &C| {
        let mut text = Vec::new();
        command.write_value_at(EVERY_FIELD, &mut text as &mut dyn Sink);
        text
    };
    text(command) == text(back)
}

/// [`IdempotentCommand::keeps`]. `own` is the oldest version that the command's own fields say.
pub fn keeps<C: IdempotentCommand, L: Lineage<C>>(own: u32, version: u32) -> bool {
    (own..=C::VERSION).contains(&version) || (C::OLDEST..own).contains(&version) && L::keeps(version)
}

/// [`IdempotentCommand::write_at`].
pub fn write_at<C: IdempotentCommand, L: Lineage<C>, S: Sink + ?Sized>(
    own: u32,
    command: &C,
    version: u32,
    sink: &mut S,
) -> bool {
    if version >= own {
        return version <= C::VERSION && write_envelope(command, version, sink);
    }
    version >= C::OLDEST && L::write_at(command, version, sink)
}

/// [`IdempotentCommand::contract_at`].
pub fn contract_at<C: IdempotentCommand, L: Lineage<C>>(own: u32, version: u32) -> Option<Contract> {
    if version >= own {
        return (version <= C::VERSION)
            .then(|| Contract::new(C::OPERATION, version, |shapes| C::shape_at(version, shapes)));
    }
    (version >= C::OLDEST).then(|| L::contract_at(version)).flatten()
}

/// Refuses, while compiling, a `previous` that is no earlier version of the same operation. `until` is the lowest one
/// of the fields, or the command's own version; gives back the oldest version kept.
pub const fn assert_lineage<C: IdempotentCommand, Old: IdempotentCommand>(oldest: Option<u32>, until: u32) -> u32 {
    assert!(
        same(C::OPERATION, Old::OPERATION),
        "`previous` has another `operation`: it is not an earlier version of this command"
    );
    assert!(Old::VERSION < C::VERSION, "`previous` is not older: its `version` has to be lower than this one's");
    let oldest = match oldest {
        Some(oldest) => oldest,
        None => Old::OLDEST,
    };
    assert!(oldest >= Old::OLDEST, "`oldest` is below what `previous` keeps");
    assert!(oldest <= Old::VERSION, "`oldest` leaves nothing for `previous` to say; take `previous` out");
    assert!(C::WRITES >= oldest, "`writes` is below the oldest version that is kept");
    assert!(until >= oldest, "`until` is below the oldest version that is kept, so the field is never hashed");
    oldest
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A version that every field was part of: an `until` counts from 1.
const EVERY_FIELD: u32 = 0;

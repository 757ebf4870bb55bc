//! Older versions of a command: what the derive makes of `oldest`, `previous` and `writes`.

use super::{IdempotentCommand, write_envelope};
use crate::canonical::Sink;
use crate::contract::Contract;

/// What generated code calls.
#[doc(hidden)]
pub mod __private {
    pub use super::{Versioned, assert_lineage, contract_at, contract_of_own, keeps, write_at, write_by_own};
}

/// What an old command is in today's terms. Every `From` is one.
#[diagnostic::on_unimplemented(
    message = "`previous = {Old}` needs the way back: `impl From<{Old}> for {Self}`",
    label = "what an old command means today is not said",
    note = "a version says a command only if the way there and back gives it again; without, a conversion that forgets a field would replay the wrong answer"
)]
pub trait WayBack<Old>: Sized {
    /// Today's command.
    fn back(old: Old) -> Self;
}

impl<Old, C: From<Old>> WayBack<Old> for C {
    fn back(old: Old) -> Self {
        old.into()
    }
}

/// Today's command in old terms, if it can be said in them. Every `TryFrom` of a reference is one.
#[diagnostic::on_unimplemented(
    message = "`previous = {Self}` needs the way there: `impl TryFrom<&{C}> for {Self}`",
    label = "how today's command was said in that version is not known",
    note = "it fails for what that version could not say; where it never fails, `impl From<&{C}> for {Self}` does as well"
)]
pub trait WayThere<C>: Sized {
    /// The old command.
    fn there(command: &C) -> Option<Self>;
}

impl<C, Old: for<'c> TryFrom<&'c C>> WayThere<C> for Old {
    fn there(command: &C) -> Option<Self> {
        command.try_into().ok()
    }
}

/// A command with a frozen struct for the versions before.
pub trait Versioned: IdempotentCommand + WayBack<Self::Previous> {
    /// The frozen struct.
    type Previous: IdempotentCommand + WayThere<Self>;

    /// The oldest version that the command's own fields say.
    const OWN: u32 = Self::VERSION;
}

/// [`IdempotentCommand::keeps`] beside a frozen struct.
pub fn keeps<C: Versioned>(version: u32) -> bool {
    (C::OWN..=C::VERSION).contains(&version) || (C::OLDEST..C::OWN).contains(&version) && C::Previous::keeps(version)
}

/// [`IdempotentCommand::contract_at`] beside a frozen struct.
pub fn contract_at<C: Versioned>(version: u32) -> Option<Contract> {
    if version >= C::OWN {
        return contract_of_own::<C>(version);
    }
    (version >= C::OLDEST).then(|| C::Previous::contract_at(version)).flatten()
}

/// [`IdempotentCommand::write_at`] beside a frozen struct.
pub fn write_at<C: Versioned, S: Sink + ?Sized>(command: &C, version: u32, sink: &mut S) -> bool {
    if version >= C::OWN {
        return write_by_own(command, version, sink);
    }
    if version < C::OLDEST {
        return false;
    }
    let Some(old) = C::Previous::there(command) else { return false };
    // Taken down before the way back, which takes the old command.
    let mut text = Vec::new();
    if !old.write_at(version, &mut text as &mut dyn Sink) || !is_one(command, &C::back(old)) {
        return false;
    }
    sink.put(&text);
    true
}

/// [`IdempotentCommand::contract_at`] for a version that the command's own fields say.
pub fn contract_of_own<C: IdempotentCommand>(version: u32) -> Option<Contract> {
    let is_own = (C::OLDEST..=C::VERSION).contains(&version);
    is_own.then(|| Contract::new(C::OPERATION, version, |shapes| C::shape_at(version, shapes)))
}

/// [`IdempotentCommand::write_at`] for a version that the command's own fields say.
pub fn write_by_own<C: IdempotentCommand, S: Sink + ?Sized>(command: &C, version: u32, sink: &mut S) -> bool {
    (C::OLDEST..=C::VERSION).contains(&version) && write_envelope(command, version, sink)
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

/// Refuses, while compiling, a `previous` that is no earlier version of the same operation. `until` is the lowest one
/// of the fields, or the command's own version; gives back the oldest version kept.
// Blames the attribute in the user's source, rather than the assertions here.
#[track_caller]
pub const fn assert_lineage<C: Versioned>(oldest: Option<u32>, until: u32) -> u32 {
    // What is left of a command with mistakes has no name. They are reported there.
    if C::Previous::OPERATION.is_empty() {
        return C::Previous::OLDEST;
    }
    assert!(
        same(C::OPERATION, C::Previous::OPERATION),
        "`previous` has another `operation`: it is not an earlier version of this command"
    );
    assert!(
        C::Previous::VERSION < C::VERSION,
        "`previous` is not older: its `version` has to be lower than this one's"
    );
    let oldest = match oldest {
        Some(oldest) => oldest,
        None => C::Previous::OLDEST,
    };
    assert!(oldest >= C::Previous::OLDEST, "`oldest` is below what `previous` keeps");
    assert!(oldest <= C::Previous::VERSION, "`oldest` leaves nothing for `previous` to say; take `previous` out");
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

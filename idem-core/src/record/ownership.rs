//! What guards the writes of a record: whose it is, and how it stood when somebody looked.

use uuid::Uuid;

use crate::key::Scope;

/// A number that grows at every change of owner. Each write names the fence it was given, so that an owner who
/// comes back late writes nothing.
///
/// The idea is from Kleppmann, "How to do distributed locking" (2016); the lease alone cannot do it, since a
/// process that was paused does not know that its lease is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// The fence of the request that inserted the record.
    pub const FIRST: Self = Self(1);

    /// The fence of the next owner.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number, for a store's column.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// Reads a fence back that a store kept.
    #[must_use]
    pub fn from_stored(number: u64) -> Self {
        Self(number)
    }
}

/// Raised by every write of a record: a take-over names the revision it decided on, so that it takes only what
/// it saw, never over an announcement made in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// The revision that the insert gives.
    pub const FIRST: Self = Self(1);

    /// The revision after one more write.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number, for a store's column.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// Reads a revision back that a store kept.
    #[must_use]
    pub fn from_stored(number: u64) -> Self {
        Self(number)
    }
}

/// A name that one attempt gives itself. It settles whether a write whose answer was lost was ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken(Uuid);

impl OwnerToken {
    /// A name that nobody had before.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The sixteen bytes, for a store's column.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Reads a token back that a store kept.
    #[must_use]
    pub fn from_stored(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

/// What a write must show: whose record, under which fence, by which attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The record.
    pub scope: Scope,
    /// The fence that the owner was given.
    pub fence: Fence,
    /// The attempt's own name.
    pub owner: OwnerToken,
}

//! Calls: named effects outside the record's database, and when a run that made some may run again.
//!
//! Safety rests on one habit: no outside call starts before it was announced, durably and fenced. A call that was
//! announced and not closed may have happened or not; what may follow then depends on what its provider promises,
//! its [`CallClass`].

mod key_form;

use std::fmt;
use std::time::{Duration, SystemTime};

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

pub use key_form::KeyForm;

use crate::key::Scope;

/// What a provider promises about the second call with the same downstream key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// The same downstream key has the same effect, for that long after the first call (Stripe: 24 h).
    Dedupes {
        /// How long the provider remembers a key.
        retention: Duration,
    },
    /// It does not dedupe, but can be asked by our key (a bank's payment file). That it does not know the key means
    /// something only once the longest call time-out plus the provider's own delay is over.
    QueryOnly {
        /// That time, counted from the announcement.
        quiescence: Duration,
    },
    /// Neither (an SMS gateway): the record cannot protect this effect, only say that nobody knows.
    Neither,
}

/// A call as an engine declares it: what its provider promises, and what its keys look like. A [`CallClass`] is one, with
/// keys of the usual form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSpec {
    pub(crate) class: CallClass,
    pub(crate) key_form: KeyForm,
}

impl CallSpec {
    /// The same call, with downstream keys of that form.
    #[must_use]
    pub fn key_form(self, key_form: KeyForm) -> Self {
        Self { key_form, ..self }
    }
}

impl From<CallClass> for CallSpec {
    fn from(class: CallClass) -> Self {
        Self { class, key_form: KeyForm::default() }
    }
}

/// Where one announced call stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallState {
    /// Announced, not closed: it may have happened.
    Open,
    /// It happened; the outcome, as the application serialised it.
    Applied(Vec<u8>),
    /// The provider refused it for good; the answer that the work gave for it.
    Rejected(Vec<u8>),
    /// It provably never left (connection refused, no connection to be had).
    Withdrawn,
}

/// One announced call of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallRecord {
    /// Its name within the operation, `charge`.
    pub name: String,
    /// What its provider promised when it was announced.
    pub class: CallClass,
    /// The key it was, or will be, made with.
    pub key: DownstreamKey,
    /// Where it stands.
    pub state: CallState,
    /// When it was first announced, by the store's clock. A re-run does not move it: the provider's retention
    /// counts from the first call it saw.
    pub opened_at: SystemTime,
}

impl CallRecord {
    /// Whether it was announced and not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == CallState::Open
    }

    /// Whether making it again has no second effect, seen from `now`.
    #[must_use]
    pub fn may_repeat(&self, now: SystemTime, margin: Duration) -> bool {
        match self.class {
            CallClass::Dedupes { retention } => {
                // A provider that never forgets is written `Duration::MAX`, which no instant can be added to.
                let forgets_at = |safe| self.opened_at.checked_add(safe);
                retention.checked_sub(margin).is_some_and(|safe| forgets_at(safe).is_none_or(|then| now < then))
            }
            CallClass::QueryOnly { .. } | CallClass::Neither => false,
        }
    }
}

/// Whether work that left these calls behind may run again: no call is open, or every open one may be repeated.
///
/// `margin` keeps clear of the provider's forgetting: the larger of the lease and five minutes.
#[must_use]
pub fn rerunnable(calls: &[CallRecord], now: SystemTime, margin: Duration) -> bool {
    calls.iter().filter(|call| call.is_open()).all(|call| call.may_repeat(now, margin))
}

/// The idempotency key that an outside call is made with. It can be had from an announced call only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DownstreamKey(String);

impl DownstreamKey {
    /// Reads a key back that a store kept.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The key's text, for the provider's header or field.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DownstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DownstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DownstreamKey({})", self.0)
    }
}

/// The identity of what one scope makes: 26 characters of `a-z2-7`, 128 bits of SHA-256 over
/// (namespace, tenant, operation, key).
///
/// It depends on nothing that a crash, a take-over or a failover could lose, not even on the record.
#[must_use]
pub fn resource_id(namespace: &str, scope: &Scope) -> String {
    let mut sha = Sha256::new();
    for part in ["idem/id/1", namespace, scope.tenant().as_str(), scope.operation(), scope.key().as_str()] {
        // Each part with its length, or ("ab", "c") and ("a", "bc") would be one.
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    BASE32_NOPAD.encode(&sha.finalize()[..16]).to_ascii_lowercase()
}

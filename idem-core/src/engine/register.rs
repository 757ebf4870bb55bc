//! The contract at start-up: what this build hashes, beside what wrote the records that are live.

use std::fmt::Write;

use crate::command::IdempotentCommand;
use crate::contract::{self, Change, Contract, ParseError};
use crate::engine::{Engine, OtherNamespace};
use crate::store::{AuditEntry, StoreError};

/// Why a command is not registered. Nothing must be taken in then: the engine would answer retries of yesterday's
/// requests wrongly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Records of this version were written by a contract that the build breaks with.
    #[error("{}", breaking(operation, *version, changes))]
    Breaking {
        /// The operation.
        operation: String,
        /// The version of both contracts.
        version: u32,
        /// From what wrote the records to what this build says; some are additive.
        changes: Vec<Change>,
    },
    /// The store holds a contract of this version that the build cannot read, so nothing tells what they share.
    #[error("the store holds a contract of `{operation}` version {version} that this build cannot read")]
    Unreadable {
        /// The operation.
        operation: String,
        /// The version.
        version: u32,
        /// Where in its text.
        source: ParseError,
    },
    /// The store belongs to another namespace.
    #[error(transparent)]
    Namespace(#[from] OtherNamespace),
    /// The store failed; the same may be tried again.
    #[error("the contracts cannot be compared")]
    Store(#[from] StoreError),
}

impl RegisterError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Breaking { .. } => "REGISTER_BREAKING",
            Self::Unreadable { .. } => "REGISTER_UNREADABLE",
            Self::Namespace(other) => other.code(),
            Self::Store(error) => error.code(),
        }
    }
}

/// Who lets a breaking contract in, and why.
struct Override<'a> {
    actor: &'a str,
    reason: &'a str,
}

impl Engine {
    /// Settles the [namespace](crate::EngineBuilder::namespace), then compares the contracts of all versions that the
    /// command keeps with those that wrote the store's records, and keeps them there. Call it for each command before
    /// traffic is taken.
    ///
    /// Accepted are a contract that the store has seen before, one that only adds to what is there, and one to which
    /// what is there only adds: a rolling deploy has both at once, and a rollback must start. A build that does not know
    /// a member drops it from a request, unless its type denies unknown fields; it then takes two requests that differ
    /// in it alone for one. Any number of nodes may register at the same time.
    ///
    /// ```
    /// use idem_core::{Engine, IdempotentCommand, MemoryStore};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct Yesterday { holder: String }
    ///
    /// #[derive(Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct Today { #[idem(uppercase)] holder: String }
    ///
    /// # futures_executor::block_on(async {
    /// let engine = Engine::builder(MemoryStore::new()).build()?;
    /// engine.register::<Yesterday>().await?;
    /// let refused = engine.register::<Today>().await.unwrap_err();
    /// assert_eq!(refused.code(), "REGISTER_BREAKING");
    /// assert!(refused.to_string().contains("breaking: holder was `text`, is `text(uppercase)`"));
    /// engine.register::<Yesterday>().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`RegisterError`]: do not start.
    pub async fn register<C: IdempotentCommand>(&self) -> Result<(), RegisterError> {
        self.register_versions::<C>(None).await
    }

    /// [`Self::register`], and where the difference is breaking lets it in all the same, with a row in the audit that
    /// says who, why and what. For records that nobody will come back for. The contract broken with is not compared
    /// with any more; a node that registers later without the override finds this one and starts.
    ///
    /// # Errors
    /// [`RegisterError`], [`RegisterError::Namespace`] too, but not [`RegisterError::Breaking`] and not
    /// [`RegisterError::Unreadable`].
    pub async fn register_anyway<C: IdempotentCommand>(&self, actor: &str, reason: &str) -> Result<(), RegisterError> {
        self.register_versions::<C>(Some(&Override { actor, reason })).await
    }

    async fn register_versions<C: IdempotentCommand>(&self, over: Option<&Override<'_>>) -> Result<(), RegisterError> {
        self.inner.settle_namespace().await??;
        for version in (C::OLDEST..=C::VERSION).filter(|version| C::keeps(*version)) {
            if let Some(contract) = C::contract_at(version) {
                self.admit(&contract, over).await?;
            }
        }
        Ok(())
    }

    async fn admit(&self, own: &Contract, over: Option<&Override<'_>>) -> Result<(), RegisterError> {
        let (operation, version, text) = (own.operation(), own.version(), own.to_string());
        let mut audited = false;
        loop {
            let seen = self.store().contracts(operation, version).await?;
            if seen.contains(&text) {
                return Ok(());
            }
            match (compare(&seen, own), over) {
                (Ok(()), _) => {}
                (Err(refused), None) => return Err(refused),
                // Before the contract is there: an override without its row must not be.
                (Err(refused), Some(over)) if !audited => {
                    self.store().audit(&audit_of(over, own, &refused)).await?;
                    audited = true;
                }
                (Err(_), Some(_)) => {}
            }
            // A place that another node took meanwhile means one more contract to compare with.
            let number = u32::try_from(seen.len()).unwrap_or(u32::MAX);
            if self.store().add_contract(operation, version, number, &text).await? {
                return Ok(());
            }
        }
    }
}

/// Whether a build may go on where these contracts wrote the records.
fn compare(seen: &[String], own: &Contract) -> Result<(), RegisterError> {
    let (operation, version) = (own.operation().to_owned(), own.version());
    let seen = seen.iter().map(|text| contract::parse(text)).collect::<Result<Vec<_>, _>>();
    let seen = seen.map_err(|source| RegisterError::Unreadable { operation: operation.clone(), version, source })?;
    let Some(newest) = seen.last() else { return Ok(()) };
    // What the newest one breaks with was given up when that one was let in.
    for old in seen.iter().filter(|old| live_together(old, newest)) {
        if !live_together(old, own) {
            return Err(RegisterError::Breaking { operation, version, changes: Contract::diff(old, own) });
        }
    }
    Ok(())
}

/// Whether one of two contracts only adds to the other. What only the wider one can say is a conflict where the narrower
/// one meets it in a record. In a request the narrower one does not see it, unless it denies unknown fields: such a
/// request gets the answer of the one without it. That is the price of a rollback that starts.
fn live_together(a: &Contract, b: &Contract) -> bool {
    Contract::keeps_hashes(a, b) || Contract::keeps_hashes(b, a)
}

fn audit_of(over: &Override<'_>, own: &Contract, refused: &RegisterError) -> AuditEntry {
    AuditEntry {
        scope: None,
        action: format!("override contract {}.v{}", own.operation(), own.version()),
        actor: over.actor.to_owned(),
        reason: format!("{}\n{refused}", over.reason),
    }
}

fn breaking(operation: &str, version: u32, changes: &[Change]) -> String {
    let mut told =
        format!("the contract of `{operation}` version {version} breaks with the one that wrote the store's records\n");
    for change in changes {
        writeln!(told, "{change}").expect("a String takes everything");
    }
    told + &format!(
        "the way out: `version = {}`, with the rules of version {version} kept (`previous = …`)",
        version.saturating_add(1)
    )
}

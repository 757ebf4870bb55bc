//! Ids of the application's own for what a command makes.

use crate::calls::CallState;
use crate::engine::Claim;
use crate::record::ResourceRef;
use crate::store::StoreError;

impl Claim {
    /// The id of what the command makes, where it cannot be a [derived](Self::derived_id) one: a number of a sequence, an id
    /// of another system. The first attempt makes it, and it is kept, durably and fenced, before this returns; every later
    /// attempt gets the same one. It is also what [`Self::makes`] says.
    ///
    /// ```
    /// # use idem_core::{Claim, CallError, Failure, Reply};
    /// # async fn work(claim: Claim, next_number: impl FnOnce() -> u64) -> Result<Reply, Failure> {
    /// let number = claim.own_id("invoice", || next_number().to_string()).await?;
    /// # Ok(Reply::status(201).body(number)) }
    /// ```
    ///
    /// Its price is one write more, and that it is lost with the record: after a failover that forgot the record, or a
    /// purge, a retry makes another one. A derived id is the same even then.
    ///
    /// It comes before the first call. What a call was made with must not be another one when it is made again.
    ///
    /// # Errors
    /// [`NoOwnId`].
    pub async fn own_id(&self, kind: &str, make: impl FnOnce() -> String) -> Result<String, NoOwnId> {
        let mut progress = self.progress.lock().await;
        match &progress.resource {
            Some(resource) if resource.kind == kind => return Ok(resource.id.clone()),
            Some(resource) => return Err(NoOwnId::OfAnotherKind(resource.kind.clone())),
            None => {}
        }
        if let Some(call) = progress.calls.iter().find(|call| call.state != CallState::Withdrawn) {
            return Err(NoOwnId::AfterCall(call.name.clone()));
        }
        let id = make();
        progress.resource = Some(ResourceRef { kind: kind.to_owned(), id: id.clone() });
        match self.write(&mut progress, None, None).await {
            Ok(Some(_)) => Ok(id),
            Ok(None) => Err(NoOwnId::Lost),
            Err(source) => {
                // Maybe it is stored, and maybe not. Nobody has it, so nobody misses it where the next try makes another.
                progress.resource = None;
                Err(NoOwnId::NotStored(source))
            }
        }
    }
}

/// Why there is no id of the application's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoOwnId {
    /// A call was announced already, maybe by an earlier attempt, with whatever id that one had.
    #[error("the call `{0}` was announced before the id of what it makes was kept: ask for the id first")]
    AfterCall(String),
    /// The command makes something else, by what this or an earlier attempt has said.
    #[error("the command makes a `{0}` by what was said before")]
    OfAnotherKind(String),
    /// Somebody else owns the record now.
    #[error("the claim was lost before the id was kept")]
    Lost,
    /// It could not be stored.
    #[error("the id cannot be kept")]
    NotStored(#[source] StoreError),
}

impl NoOwnId {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::AfterCall(_) => "OWN_ID_AFTER_CALL",
            Self::OfAnotherKind(_) => "OWN_ID_OF_ANOTHER_KIND",
            Self::Lost => "OWN_ID_CLAIM_LOST",
            Self::NotStored(error) => error.code(),
        }
    }
}

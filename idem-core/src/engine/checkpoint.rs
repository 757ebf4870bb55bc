//! Going on from what an earlier attempt kept, or finding that this build cannot.

use serde::de::DeserializeOwned;

use crate::engine::Claim;
use crate::reply::Failure;

/// An earlier attempt left a checkpoint that this build cannot go on from: it was written by another release, or is
/// damaged. Nobody knows then how far the work came.
#[derive(Debug, thiserror::Error)]
#[error(
    "the checkpoint `{name}` version {version} is there, and `{wanted_name}` version {wanted_version} was asked for"
)]
#[non_exhaustive]
pub struct UnreadableCheckpoint {
    /// Its name.
    pub name: String,
    /// The version of its data.
    pub version: u32,
    /// The name that the work reads.
    pub wanted_name: String,
    /// The version that the work reads.
    pub wanted_version: u32,
    /// Where name and version are the wanted ones: why the data is not.
    #[source]
    pub source: Option<serde_json::Error>,
}

impl UnreadableCheckpoint {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "CHECKPOINT_UNREADABLE"
    }
}

impl Claim {
    /// What an earlier attempt kept by [`Self::checkpoint`] under this name and version; `None` where none kept any. Work
    /// with several points looks at the name in [`Self::last_checkpoint`] first.
    ///
    /// ```
    /// # use idem_core::{Claim, Failure, Reply};
    /// # async fn reserve() -> Result<u64, Failure> { Ok(1) }
    /// async fn ship(claim: Claim) -> Result<Reply, Failure> {
    ///     let reservation: u64 = match claim.resume_from("reserved", 1)? {
    ///         Some(reservation) => reservation,
    ///         None => {
    ///             let reservation = reserve().await?;
    ///             claim.checkpoint("reserved", 1, &reservation).await?;
    ///             reservation
    ///         }
    ///     };
    ///     Ok(Reply::status(201).body(reservation.to_string()))
    /// }
    /// # use idem_core::{Engine, IdempotentCommand, MemoryStore, Outcome, Tenant};
    /// # #[derive(IdempotentCommand)]
    /// # #[idem(operation = "ship", version = 1)]
    /// # struct Ship { order: u64 }
    /// # futures_executor::block_on(async {
    /// # let engine = Engine::builder(MemoryStore::new()).build()?;
    /// # let ended = engine.run(&Tenant::new("acme")?, &"k".parse()?, &Ship { order: 1 }, ship).await?;
    /// # assert!(matches!(ended, Outcome::Done { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Failure::unknown`] with an [`UnreadableCheckpoint`], to be passed on with `?`: the record becomes unknown and is
    /// not run again until a person has looked. As an error that may be tried again it would fail in every attempt.
    pub fn resume_from<T: DeserializeOwned>(&self, name: &str, version: u32) -> Result<Option<T>, Failure> {
        let Some(left) = self.last_checkpoint() else { return Ok(None) };
        let unreadable = |source| {
            Failure::unknown(UnreadableCheckpoint {
                name: left.name.clone(),
                version: left.version,
                wanted_name: name.to_owned(),
                wanted_version: version,
                source,
            })
        };
        if (left.name.as_str(), left.version) != (name, version) {
            return Err(unreadable(None));
        }
        left.data_as().map(Some).map_err(|source| unreadable(Some(source)))
    }
}

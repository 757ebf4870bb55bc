//! Where everything of one test is that outlives a process.

use std::path::PathBuf;

use payments::provider::Kind;
use serde::{Deserialize, Serialize};

use crate::home::Address;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct World {
    pub(crate) records: Address,
    pub(crate) folder: PathBuf,
    pub(crate) kind: Kind,
}

impl World {
    /// The provider's own file.
    pub(crate) fn provider(&self) -> PathBuf {
        self.folder.join("provider.sqlite")
    }
}

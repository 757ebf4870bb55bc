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

pub(crate) const KINDS: [Kind; 3] = [Kind::Dedupes, Kind::QueryOnly, Kind::Neither];

/// How often each trial is run: as often as `IDEM_ROUNDS` says; else once, and ten times with `IDEM_SOAK`.
pub(crate) fn rounds() -> u32 {
    let usual = if std::env::var_os("IDEM_SOAK").is_some() { 10 } else { 1 };
    std::env::var("IDEM_ROUNDS").ok().map_or(usual, |rounds| rounds.parse().unwrap())
}

/// A trial's chance. It tells its seed, which `IDEM_SEED` gives back to it.
pub(crate) fn random(trial: &str) -> fastrand::Rng {
    let seed = std::env::var("IDEM_SEED").ok().map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("{trial}: IDEM_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

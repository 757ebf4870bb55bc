//! Which operations keep no answers, for whoever has only the store: a person's tools must not keep them either.

use std::collections::BTreeMap;

use crate::engine::Inner;
use crate::rules::Replay;
use crate::store::StoreError;

impl Inner {
    /// Says so among the store's settings. It is never taken back: an answer that was not to be kept once is kept by no
    /// tool later.
    pub(super) async fn say_what_is_rebuilt(&self) -> Result<(), StoreError> {
        let named = self.operations.iter().map(|(operation, rules)| (operation.as_str(), rules));
        for (operation, rules) in named.chain([(ALL, &self.rules)]) {
            if let Replay::Rebuilt { schema_version } = rules.replay {
                self.store.settle_setting(&format!("{REBUILT}{operation}:{schema_version}"), "yes").await?;
            }
        }
        Ok(())
    }
}

/// The operations whose answers are written anew each time ([`Replay::Rebuilt`]), with the newest version of their form,
/// as a store's [settings](crate::store::Keeping::settings) name them. `*`: all that have no rules of their own.
#[must_use]
pub fn rebuilt(settings: &[(String, String)]) -> BTreeMap<String, u32> {
    let mut rebuilt: BTreeMap<String, u32> = BTreeMap::new();
    for (name, _) in settings {
        let said = name.strip_prefix(REBUILT).and_then(|said| said.rsplit_once(':'));
        if let Some((operation, version)) =
            said.and_then(|(operation, version)| Some((operation, version.parse::<u32>().ok()?)))
        {
            let newest = rebuilt.entry(operation.to_owned()).or_default();
            *newest = version.max(*newest);
        }
    }
    rebuilt
}

const REBUILT: &str = "rebuilt:";

const ALL: &str = "*";

//! What makes two requests one command: canonical form 1 and its hash, through the derive.
#![allow(clippy::unwrap_used)] // in a test, a panic is a failure

mod amounts;
mod buffer;
mod cost;
mod defaults;
mod derive;
mod laws;
mod members;
mod order;
mod reach;
mod reference;
mod strict;
mod text;
mod types;
mod values;
mod vectors;
mod versions;

/// Derives a command with one field `v` and gives its preimage.
macro_rules! preimage {
    ($(#[$attr:meta])* $ty:ty = $value:expr) => {{
        #[derive(idem_core::IdempotentCommand)]
        #[idem(operation = "t", version = 1, allow_empty)]
        struct T {
            $(#[$attr])*
            v: $ty,
        }
        idem_core::IdempotentCommand::preimage(&T { v: $value })
    }};
}

/// The text of the one field of [`preimage!`], or nothing if it is left out.
macro_rules! canonical {
    ($($field:tt)*) => {{
        let preimage = $crate::canonical::preimage!($($field)*);
        let members = preimage.strip_prefix(r#"["idem/1","t",1,{"#).and_then(|rest| rest.strip_suffix("}]"));
        members.expect("the envelope of operation t").trim_start_matches(r#""v":"#).to_owned()
    }};
}

pub(crate) use {canonical, preimage};

/// Fails unless all the texts differ.
#[track_caller]
fn assert_all_differ(texts: &[String]) {
    let unique: std::collections::HashSet<_> = texts.iter().collect();
    assert_eq!(unique.len(), texts.len(), "two of these are one: {texts:#?}");
}

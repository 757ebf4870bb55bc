//! What decides a command's hash, as data and as one stable text.

mod coverage;
mod diff;
mod labels;
mod parse;
mod text;

use std::fmt;

pub use diff::{Change, Effect, Rule};
pub use parse::{ParseError, parse};
#[cfg(feature = "snapshot")]
pub(crate) use text::visible;

use crate::canonical::{Shape, Shapes};
use crate::hash::FORM;

/// What decides the hash of one operation and version.
///
/// Its text is the same on every machine and in every build, holds no Rust names, and [`parse`] reads it back. It is
/// made for review: a change to it is a change to what counts as the same request.
///
/// ```
/// use idem_core::{Canonical, IdempotentCommand, contract};
/// use serde::Deserialize;
///
/// #[derive(Canonical, Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Item {
///     sku: String,
///     quantity: u32,
/// }
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "place_order", version = 1)]
/// struct PlaceOrder {
///     items: Vec<Item>,
///     #[idem(uppercase)]
///     currency: String,
///     #[idem(default = "web")]
///     channel: Option<String>,
///     #[idem(exclude)]
///     trace_id: String,
/// }
///
/// assert_eq!(
///     PlaceOrder::contract().to_string(),
///     r#"idem contract 1
/// operation: place_order
/// version: 1
/// form: idem/1
/// unknown fields: denied
///
/// command: object
///   channel?: text = "web"
///   currency: text(uppercase)
///   items: list of object(unknown fields denied)
///     quantity: integer
///     sku: text
///   trace_id: not hashed
/// "#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    operation: String,
    version: u32,
    form: u16,
    command: Shape,
}

/// What has a contract: every [`IdempotentCommand`](crate::IdempotentCommand).
pub trait Contracted {
    /// What decides its hash.
    #[doc(hidden)]
    fn contracted() -> Contract;
}

/// The contract of a command, at its present version.
pub fn of<C: Contracted + ?Sized>() -> Contract {
    C::contracted()
}

impl Contract {
    pub(crate) fn new(operation: &str, version: u32, shape: impl FnOnce(&mut Shapes) -> Shape) -> Self {
        let command = Shapes::describe(shape);
        Self { operation: operation.into(), version, form: FORM, command }
    }

    /// The operation's name.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The version of the contract.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The canonical form.
    pub fn form(&self) -> u16 {
        self.form
    }

    /// Whether requests with unknown members are refused by the command's own type.
    pub fn denies_unknown(&self) -> bool {
        match &self.command {
            Shape::Named { shape, .. } => shape.denies_unknown(),
            shape => shape.denies_unknown(),
        }
    }

    /// The shape of the command's value.
    pub fn command(&self) -> &Shape {
        &self.command
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(self, f)
    }
}

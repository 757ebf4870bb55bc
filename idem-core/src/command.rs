//! What a command says of itself.

mod envelope;
mod versions;

#[doc(hidden)]
pub use envelope::Opening;
use envelope::write_envelope;
#[doc(hidden)]
pub use versions::__private;

use crate::canonical::{Canonical, Shape, Shapes, Sink};
use crate::contract::{Contract, Contracted};
use crate::hash::{CommandHash, FORM, Verdict};

/// A request whose repetition must be recognised.
///
/// Derived, with `#[idem(operation = "…", version = N)]` on the struct:
///
/// ```
/// use idem_core::{IdempotentCommand, Verdict};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "create_payment", version = 1)]
/// struct CreatePayment {
///     account_id: String,
///     #[idem(uppercase)]
///     currency: String,
///     #[idem(default = "web")]
///     channel: Option<String>,
///     #[idem(exclude)]
///     trace_id: Option<String>,
/// }
///
/// let first = CreatePayment {
///     account_id: "acc_1".into(),
///     currency: "EUR".into(),
///     channel: None,
///     trace_id: Some("a".into()),
/// };
/// let retry = CreatePayment {
///     account_id: "acc_1".into(),
///     currency: "eur".into(),
///     channel: Some("web".into()),
///     trace_id: Some("b".into()),
/// };
/// assert_eq!(retry.verdict(&first.command_hash()), Verdict::Same);
/// assert_eq!(
///     retry.preimage(),
///     r#"["idem/1","create_payment",1,{"account_id":"acc_1","currency":"EUR"}]"#
/// );
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an idempotent command",
    label = "no operation and version to hash under",
    note = "add `#[derive(IdempotentCommand)]` and `#[idem(operation = \"…\", version = 1)]` to the type"
)]
pub trait IdempotentCommand: Canonical {
    /// The operation's name, part of every hash. Given in the derive, never taken from the type's name, so that moving
    /// or renaming code changes no hash.
    const OPERATION: &'static str;

    /// The version of the contract, 1 to 2^31-1. A change that moves hashes gets a new one.
    const VERSION: u32;

    /// The oldest version whose hashes this build can still compute, from `oldest = N` or `previous = Old`.
    const OLDEST: u32 = Self::VERSION;

    /// The version that new records are written in where it can say the command, from `writes = N`.
    const WRITES: u32 = Self::VERSION;

    /// What the preimage starts with.
    #[doc(hidden)]
    const OPENING: Option<Opening> = Opening::of(Self::OPERATION, Self::VERSION);

    /// Whether this build keeps the rules of `version`. Between [`OLDEST`](Self::OLDEST) and
    /// [`VERSION`](Self::VERSION) a version may be missing: one that `previous` leaps over.
    fn keeps(version: u32) -> bool {
        version == Self::VERSION
    }

    /// The hash by the rules of `version`. `None` if this build does not keep them, or if they cannot say the command:
    /// it asks for something that had no words then.
    fn hash_at(&self, version: u32) -> Option<CommandHash> {
        CommandHash::of(version, |hasher| self.write_at(version, hasher))
    }

    /// The hash that a new record keeps: by the lowest version from [`WRITES`](Self::WRITES) on that can say the
    /// command.
    fn command_hash(&self) -> CommandHash {
        let said = (Self::WRITES..=Self::VERSION).find_map(|version| self.hash_at(version));
        said.expect("a command can be said in its own version")
    }

    /// Compares the command with a record's hash, by the rules that wrote the record.
    fn verdict(&self, stored: &CommandHash) -> Verdict {
        if stored.form() > FORM || stored.version() > Self::VERSION {
            return Verdict::Newer;
        }
        if stored.form() < FORM || !Self::keeps(stored.version()) {
            return Verdict::Retired;
        }
        match self.hash_at(stored.version()) {
            Some(hash) if hash == *stored => Verdict::Same,
            _ => Verdict::Different,
        }
    }

    /// The text that [`command_hash`](Self::command_hash) is taken of: `["idem/1",OPERATION,VERSION,VALUE]`.
    ///
    /// It holds the command's data in the clear; keep it out of logs where the data is.
    fn preimage(&self) -> String {
        let said = (Self::WRITES..=Self::VERSION).find_map(|version| self.preimage_at(version));
        said.expect("a command can be said in its own version")
    }

    /// The text that [`hash_at`](Self::hash_at) takes the hash of.
    fn preimage_at(&self, version: u32) -> Option<String> {
        let mut text = Vec::new();
        let said = self.write_at(version, &mut text as &mut dyn Sink);
        said.then(|| String::from_utf8(text).expect("canonical text is put together from whole UTF-8 strings"))
    }

    /// What decides the hash at the present version, for review and for comparison with yesterday's.
    fn contract() -> Contract {
        Contract::new(Self::OPERATION, Self::VERSION, Self::shape)
    }

    /// What decides the hash by the rules of `version`, if this build [`keeps`](Self::keeps) them.
    fn contract_at(version: u32) -> Option<Contract> {
        (version == Self::VERSION).then(Self::contract)
    }

    /// Writes the preimage by the rules of `version`. Writes nothing and says `false` if there is none.
    #[doc(hidden)]
    fn write_at<S: Sink + ?Sized>(&self, version: u32, sink: &mut S) -> bool {
        version == Self::VERSION && write_envelope(self, version, sink)
    }

    /// Writes the value with the fields that `version` had. Derived where a field has an `until`.
    #[doc(hidden)]
    fn write_value_at<S: Sink + ?Sized>(&self, _version: u32, sink: &mut S) {
        self.write(sink);
    }

    /// Describes what [`write_value_at`](Self::write_value_at) writes.
    #[doc(hidden)]
    fn shape_at(_version: u32, shapes: &mut Shapes) -> Shape {
        Self::shape(shapes)
    }
}

impl<C: IdempotentCommand + ?Sized> Contracted for C {
    fn contracted() -> Contract {
        C::contract()
    }
}

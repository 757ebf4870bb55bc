//! What a command says of itself.

use crate::canonical::{Canonical, Sink, write_bare};
use crate::contract::Contract;
use crate::hash::{CommandHash, FORM, Verdict};

/// A request whose repetition must be recognised.
///
/// Derived, with `#[idem(operation = "…", version = N)]` on the struct:
///
/// ```
/// use idem_core::{IdempotentCommand, Verdict};
///
/// #[derive(IdempotentCommand)]
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

    /// The oldest version whose hashes this build can still compute.
    const OLDEST: u32 = Self::VERSION;

    /// The hash by the rules of `version`, if this build keeps them and the command can be said in them.
    fn hash_at(&self, version: u32) -> Option<CommandHash> {
        (version == Self::VERSION).then(|| CommandHash::of(version, |sink| write_envelope(self, sink)))
    }

    /// The hash that a new record keeps.
    fn command_hash(&self) -> CommandHash {
        CommandHash::of(Self::VERSION, |sink| write_envelope(self, sink))
    }

    /// Compares the command with a record's hash, by the rules that wrote the record.
    fn verdict(&self, stored: &CommandHash) -> Verdict {
        if stored.form() > FORM || stored.version() > Self::VERSION {
            return Verdict::Newer;
        }
        if stored.form() < FORM || stored.version() < Self::OLDEST {
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
        let mut text = Vec::new();
        write_envelope(self, &mut text as &mut dyn Sink);
        String::from_utf8(text).expect("canonical text is put together from whole UTF-8 strings")
    }

    /// What decides the hash, for review and for comparison with yesterday's.
    fn contract() -> Contract {
        Contract::new(Self::OPERATION, Self::VERSION, Self::shape)
    }
}

/// Writes the whole preimage of a command at its own version.
fn write_envelope<C: IdempotentCommand + ?Sized, S: Sink + ?Sized>(command: &C, sink: &mut S) {
    sink.put(br#"["idem/1","#);
    <str as Canonical>::write(C::OPERATION, sink);
    sink.put(b",");
    write_bare(C::VERSION, sink);
    sink.put(b",");
    command.write(sink);
    sink.put(b"]");
}

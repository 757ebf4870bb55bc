//! What a command says of itself.
use crate::hash::{CommandHash, Verdict};
/// A request whose repetition must be recognised.
pub trait IdempotentCommand {
    /// The operation's name, part of every hash.
    const OPERATION: &'static str;
    /// The version of the contract.
    const VERSION: u32;
    /// The hash that a new record keeps.
    fn command_hash(&self) -> CommandHash;
    /// Compares the command with a record's hash.
    fn verdict(&self, stored: &CommandHash) -> Verdict;
}

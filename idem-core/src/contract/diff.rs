//! What a change of a contract does to hashes that are kept: each difference by its rule, additive or breaking.

mod rules;
mod walk;

use std::fmt;

pub use rules::Rule;

use super::Contract;
use walk::Walk;

/// What a difference does to the hashes of what could be asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They stay: a record of yesterday answers today's retry.
    Additive,
    /// Some change, or two requests that were two are one now: the version has to change.
    Breaking,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Additive => "additive",
            Self::Breaking => "breaking",
        })
    }
}

/// One difference between two contracts.
///
/// Displays as a line with the member, what was and what is, and a line with the consequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    member: String,
    rule: &'static Rule,
    was: Option<String>,
    is: Option<String>,
}

impl Change {
    /// The member, from the command down: `items[].quantity`, `method.bank.iban`; `command` for the whole.
    pub fn member(&self) -> &str {
        &self.member
    }

    /// The rule that tells it.
    pub fn rule(&self) -> &'static Rule {
        self.rule
    }

    /// What stood in the old contract; `None` where it had no such part.
    pub fn was(&self) -> Option<&str> {
        self.was.as_deref()
    }

    /// What stands in the new contract; `None` where it has no such part.
    pub fn is(&self) -> Option<&str> {
        self.is.as_deref()
    }

    /// Whether hashes change.
    pub fn is_breaking(&self) -> bool {
        self.rule.effect() == Effect::Breaking
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.rule.effect(), self.member)?;
        match (&self.was, &self.is) {
            (Some(was), Some(is)) => write!(f, "was `{was}`, is `{is}`")?,
            (Some(was), None) => write!(f, "was `{was}`, is gone")?,
            (None, Some(is)) => write!(f, "is new: `{is}`")?,
            (None, None) => f.write_str("changed")?,
        }
        write!(f, "\n  {} [{}]", self.rule.consequence(), self.rule.code())
    }
}

impl Contract {
    /// Every difference between two contracts, in the order of the new one's text. Empty: every value has one hash by
    /// both, whatever the types behind them are called.
    ///
    /// ```
    /// use idem_core::{Contract, contract};
    ///
    /// let text = "idem contract 1\noperation: pay\nversion: 1\nform: idem/1\nunknown fields: denied\n\ncommand: object\n";
    /// let old = contract::parse(&format!("{text}  amount: decimal(scale = 2)\n"))?;
    /// let new = contract::parse(&format!("{text}  amount: decimal(scale = 3)\n  note?: text\n"))?;
    /// let changes = Contract::diff(&old, &new);
    /// let told: Vec<_> = changes.iter().map(|change| (change.member(), change.rule().code())).collect();
    /// assert_eq!(told, [("amount", "scale_changed"), ("note", "optional_member_added")]);
    /// assert_eq!(
    ///     changes[0].to_string(),
    ///     "breaking: amount was `decimal(scale = 2)`, is `decimal(scale = 3)`\n  \
    ///      the same amount is written with another number of zeros [scale_changed]"
    /// );
    /// assert!(!changes[1].is_breaking());
    /// # Ok::<(), contract::ParseError>(())
    /// ```
    pub fn diff(old: &Self, new: &Self) -> Vec<Change> {
        let pairs = Walk::through(old, new);
        let told = pairs.iter().flat_map(|pair| {
            Rule::ALL.iter().filter_map(|rule| {
                let (was, is) = rule.sees(&pair.parts)?;
                Some(Change { member: pair.path.clone(), rule: rule.within(pair.within), was, is })
            })
        });
        told.collect()
    }

    /// Whether what was hashed by `old` keeps its hash by `new`: [`diff`](Self::diff) finds nothing that is breaking.
    pub fn keeps_hashes(old: &Self, new: &Self) -> bool {
        !Self::diff(old, new).iter().any(Change::is_breaking)
    }
}

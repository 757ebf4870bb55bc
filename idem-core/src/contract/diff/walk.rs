//! Lays two contracts side by side: which part of the new one is which of the old one.

use crate::canonical::shape::{Member, Shape, Variant};
use crate::contract::Contract;
use crate::contract::diff::rules::Rule;
use crate::contract::labels::Labels;
use crate::contract::text::{below, word};

/// Two parts that stand at one place.
pub(super) struct Pair<'c> {
    pub(super) path: String,
    pub(super) parts: Parts<'c>,
}

/// What stands at a place in the old and in the new contract.
pub(super) enum Parts<'c> {
    /// The contracts as a whole.
    Contracts(&'c Contract, &'c Contract),
    /// Members of an object.
    Members(Option<&'c Member>, Option<&'c Member>),
    /// Variants. `beside` are the old ones.
    Variants { old: Option<&'c Variant>, new: Option<&'c Variant>, beside: &'c [Variant] },
    /// Values. Numbers are resolved, and so is whether a member may be absent.
    Shapes(&'c Shape, &'c Shape),
    /// Whether a value may be none.
    Optional(Optional),
}

/// What became of a value's being optional.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Optional {
    /// It may be none now.
    Now,
    /// It may no longer be none.
    NoMore,
    /// Its own text can be `null` on one side only, where it stands in brackets.
    Brackets,
    /// A member that may be absent may be `null` besides.
    AndNull,
}

pub(super) struct Walk<'c> {
    old: Labels<'c>,
    new: Labels<'c>,
    /// What is being compared further up: types that hold themselves end here.
    open: Vec<(*const Shape, *const Shape)>,
    pairs: Vec<Pair<'c>>,
}

impl<'c> Walk<'c> {
    pub(super) fn through(old: &'c Contract, new: &'c Contract) -> Vec<Pair<'c>> {
        let mut walk = Self {
            old: Labels::of(old.command()),
            new: Labels::of(new.command()),
            open: Vec::new(),
            pairs: Vec::new(),
        };
        walk.found("command", Parts::Contracts(old, new));
        walk.shapes("", old.command(), new.command());
        walk.pairs
    }

    fn found(&mut self, path: &str, parts: Parts<'c>) {
        let path = if path.is_empty() { "command" } else { path };
        self.pairs.push(Pair { path: path.to_owned(), parts });
    }

    fn shapes(&mut self, path: &str, old: &'c Shape, new: &'c Shape) {
        let (old, new) = (self.old.resolve(old), self.new.resolve(new));
        let both: (*const Shape, *const Shape) = (old, new);
        if self.open.contains(&both) {
            return;
        }
        self.open.push(both);
        match (old, new) {
            (Shape::Optional(old), Shape::Optional(new)) => {
                let nullable = is_nullable(self.new.resolve(new));
                if nullable != is_nullable(self.old.resolve(old)) {
                    self.found(path, Parts::Optional(Optional::Brackets));
                }
                self.shapes(path, old, new);
            }
            (Shape::Optional(old), new) => {
                self.found(path, Parts::Optional(Optional::NoMore));
                self.shapes(path, old, new);
            }
            (old, Shape::Optional(new)) => {
                let nullable = is_nullable(self.new.resolve(new));
                let optional = if nullable { Optional::Brackets } else { Optional::Now };
                self.found(path, Parts::Optional(optional));
                self.shapes(path, old, new);
            }
            _ => {
                self.found(path, Parts::Shapes(old, new));
                self.insides(path, old, new);
            }
        }
        self.open.pop();
    }

    fn insides(&mut self, path: &str, old: &'c Shape, new: &'c Shape) {
        match (old, new) {
            (
                Shape::List(old) | Shape::Unordered(old) | Shape::Set(old),
                Shape::List(new) | Shape::Unordered(new) | Shape::Set(new),
            )
            | (Shape::Map { value: old, .. }, Shape::Map { value: new, .. }) => {
                self.shapes(&format!("{path}[]"), old, new);
            }
            (Shape::Tuple(old), Shape::Tuple(new)) => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.shapes(&below(path, &index.to_string()), old, new);
                }
            }
            (Shape::Object { members: old, .. }, Shape::Object { members: new, .. }) => self.members(path, old, new),
            (Shape::OneOf { variants: old, .. }, Shape::OneOf { variants: new, .. }) => self.variants(path, old, new),
            _ => {}
        }
    }

    fn members(&mut self, path: &str, old: &'c [Member], new: &'c [Member]) {
        let same = |walk: &Self, old: &'c Member, new: &'c Member| match (old, new) {
            (
                Member::Hashed { shape: old, default: was, wire: was_wire, .. },
                Member::Hashed { shape: new, default: is, wire, .. },
            ) => was == is && was_wire == wire && walk.is_one(old, new),
            _ => false,
        };
        for (old, new) in self.aligned(old, new, Member::name, same) {
            let Some(name) = old.or(new).map(Member::name) else { continue };
            let path = below(path, &word(name));
            self.found(&path, Parts::Members(old, new));
            let (Some(Member::Hashed { shape: old, .. }), Some(Member::Hashed { shape: new, .. })) = (old, new) else {
                continue;
            };
            // A member's value is the same text whether the member may be absent or not, `null` included.
            match (self.old.resolve(old), self.new.resolve(new)) {
                (Shape::Optional(old), Shape::Optional(new)) => match (self.old.resolve(old), self.new.resolve(new)) {
                    (Shape::Optional(_), _) => self.shapes(&path, old, new),
                    (old, Shape::Optional(new)) => {
                        self.found(&path, Parts::Optional(Optional::AndNull));
                        self.shapes(&path, old, new);
                    }
                    _ => self.shapes(&path, old, new),
                },
                (old, Shape::Optional(new)) => {
                    self.found(&path, Parts::Optional(Optional::Now));
                    self.shapes(&path, old, new);
                }
                _ => self.shapes(&path, old, new),
            }
        }
    }

    fn variants(&mut self, path: &str, old: &'c [Variant], new: &'c [Variant]) {
        let same = |walk: &Self, old: &'c Variant, new: &'c Variant| {
            old.wire == new.wire
                && match (&old.shape, &new.shape) {
                    (Some(old), Some(new)) => walk.is_one(old, new),
                    (old, new) => old == new,
                }
        };
        for (was, is) in self.aligned(old, new, |variant| &variant.name, same) {
            let Some(name) = was.or(is).map(|variant| &variant.name) else { continue };
            let path = below(path, &word(name));
            self.found(&path, Parts::Variants { old: was, new: is, beside: old });
            if let (Some(Variant { shape: Some(old), .. }), Some(Variant { shape: Some(new), .. })) = (was, is) {
                self.shapes(&path, old, new);
            }
        }
    }

    /// Pairs parts by name. One that went and one that came, both the only ones of their kind, are one renamed.
    fn aligned<T>(
        &self,
        old: &'c [T],
        new: &'c [T],
        name: impl Fn(&T) -> &str,
        same: impl Fn(&Self, &'c T, &'c T) -> bool,
    ) -> Vec<(Option<&'c T>, Option<&'c T>)> {
        let only_in = |these: &'c [T], those: &'c [T]| {
            let is_only = |part: &&T| !those.iter().any(|other| name(other) == name(part));
            these.iter().filter(is_only).collect::<Vec<_>>()
        };
        let (gone, came) = (only_in(old, new), only_in(new, old));
        let only_match = |part: &'c T| {
            let was = gone.iter().copied().filter(|was| same(self, was, part)).collect::<Vec<_>>();
            let [was] = was[..] else { return None };
            (came.iter().filter(|is| same(self, was, is)).count() == 1).then_some(was)
        };
        let mut pairs: Vec<_> = new
            .iter()
            .map(|part| (old.iter().find(|was| name(was) == name(part)).or_else(|| only_match(part)), Some(part)))
            .collect();
        let is_taken = |was: &T, pairs: &[(Option<&T>, _)]| {
            pairs.iter().any(|(old, _)| old.is_some_and(|old| name(old) == name(was)))
        };
        let lost: Vec<_> = gone.into_iter().filter(|was| !is_taken(was, &pairs)).map(|was| (Some(was), None)).collect();
        pairs.extend(lost);
        pairs
    }

    /// Whether no rule tells two values apart.
    fn is_one(&self, old: &'c Shape, new: &'c Shape) -> bool {
        let mut walk =
            Self { old: self.old.clone(), new: self.new.clone(), open: self.open.clone(), pairs: Vec::new() };
        walk.shapes("", old, new);
        walk.pairs.iter().all(|pair| Rule::ALL.iter().all(|rule| rule.sees(&pair.parts).is_none()))
    }
}

/// Whether a value's own text can be `null`.
fn is_nullable(shape: &Shape) -> bool {
    match shape {
        Shape::Optional(_) | Shape::Nothing => true,
        Shape::Leaf { class, .. } => class == "json",
        _ => false,
    }
}

//! Lays two contracts side by side: which part of the new one is which of the old one.

use std::collections::HashSet;

use crate::canonical::shape::{Member, Shape, Variant, Wire};
use crate::contract::Contract;
use crate::contract::diff::rules::Rule;
use crate::contract::labels::Labels;
use crate::contract::text::{below, word};

/// Two parts that stand at one place.
pub(super) struct Pair<'c> {
    pub(super) path: String,
    pub(super) parts: Parts<'c>,
    pub(super) within: Option<Within>,
}

/// What parts stand in that come in together with others, or not at all: there no difference is additive.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Within {
    /// A variant that is told by what fits it.
    Untagged,
    /// Members of which a flattened one takes what the others leave.
    Flattened,
    /// A value that no request has.
    FilledIn,
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
    /// It may be none now, which is what `null` is read as. Before, `null` was read as a value.
    NullToo,
    /// Its own text can be `null` on one side only, where it stands in brackets.
    Brackets,
    /// A member that may be absent may be `null` besides.
    AndNull,
}

pub(super) struct Walk<'c> {
    old: Labels<'c>,
    new: Labels<'c>,
    /// What is being compared further up: types that hold themselves end here.
    open: Vec<(*const Shape, *const Shape, Option<Within>)>,
    within: Option<Within>,
    pairs: Vec<Pair<'c>>,
}

impl<'c> Walk<'c> {
    pub(super) fn through(old: &'c Contract, new: &'c Contract) -> Vec<Pair<'c>> {
        let mut walk = Self {
            old: Labels::of(old.command()),
            new: Labels::of(new.command()),
            open: Vec::new(),
            within: None,
            pairs: Vec::new(),
        };
        walk.found("command", Parts::Contracts(old, new));
        walk.shapes("", old.command(), new.command());
        walk.pairs
    }

    fn found(&mut self, path: &str, parts: Parts<'c>) {
        self.found_within(self.within, path, parts);
    }

    fn found_within(&mut self, within: Option<Within>, path: &str, parts: Parts<'c>) {
        let path = if path.is_empty() { "command" } else { path };
        self.pairs.push(Pair { path: path.to_owned(), parts, within });
    }

    /// Goes on below a part that the others stand in.
    fn shapes_within(&mut self, within: Option<Within>, path: &str, old: &'c Shape, new: &'c Shape) {
        let outside = std::mem::replace(&mut self.within, within);
        self.shapes(path, old, new);
        self.within = outside;
    }

    fn shapes(&mut self, path: &str, old: &'c Shape, new: &'c Shape) {
        let (old, new) = (self.old.resolve(old), self.new.resolve(new));
        let here: (*const Shape, *const Shape, _) = (old, new, self.within);
        if self.open.contains(&here) {
            return;
        }
        self.open.push(here);
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
                let optional = match is_nullable(self.new.resolve(new)) {
                    true => Optional::Brackets,
                    false if reads_null(&self.old, old) => Optional::NullToo,
                    false => Optional::Now,
                };
                self.found(path, Parts::Optional(optional));
                self.shapes(path, old, new);
            }
            _ => {
                // What the whole refuses decides which of its variants a request fits.
                let within = [old, new].into_iter().any(has_untagged).then_some(Within::Untagged);
                self.found_within(self.within.or(within), path, Parts::Shapes(old, new));
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
        let flattened: HashSet<_> =
            old.iter().chain(new).filter(|member| is_flattened(member)).map(Member::name).collect();
        for (old, new) in self.aligned(old, new, Member::name, same) {
            let Some(name) = old.or(new).map(Member::name) else { continue };
            let path = below(path, &word(name));
            let is_shared = flattened.iter().any(|other| *other != name);
            let within = self.within.or(is_shared.then_some(Within::Flattened));
            self.found_within(within, &path, Parts::Members(old, new));
            let (Some(was), Some(is)) = (old, new) else { continue };
            let (Member::Hashed { shape: old, wire: was, .. }, Member::Hashed { shape: new, wire: is, .. }) = (was, is)
            else {
                continue;
            };
            let comes_in = |wire| [*was, *is].contains(&Some(wire));
            let within = match self.within {
                Some(Within::Untagged | Within::FilledIn) => self.within,
                _ if comes_in(Wire::NotDeserialized) => Some(Within::FilledIn),
                within if comes_in(Wire::Flattened) => within.or(is_shared.then_some(Within::Flattened)),
                _ => None,
            };
            // A member's value is the same text whether the member may be absent or not, `null` included.
            match (self.old.resolve(old), self.new.resolve(new)) {
                (Shape::Optional(old), Shape::Optional(new)) => match (self.old.resolve(old), self.new.resolve(new)) {
                    (Shape::Optional(_), _) => self.shapes_within(within, &path, old, new),
                    (old, Shape::Optional(new)) => {
                        self.found(&path, Parts::Optional(Optional::AndNull));
                        self.shapes_within(within, &path, old, new);
                    }
                    _ => self.shapes_within(within, &path, old, new),
                },
                (old, Shape::Optional(new)) => {
                    let optional = if reads_null(&self.old, old) { Optional::NullToo } else { Optional::Now };
                    self.found(&path, Parts::Optional(optional));
                    self.shapes_within(within, &path, old, new);
                }
                _ => self.shapes_within(within, &path, old, new),
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
            let (Some(was), Some(is)) = (was, is) else { continue };
            let within = match self.within {
                None if is_untagged(was) || is_untagged(is) => Some(Within::Untagged),
                None if [was.wire, is.wire].contains(&Some(Wire::NotDeserialized)) => Some(Within::FilledIn),
                within => within,
            };
            if let (Some(old), Some(new)) = (&was.shape, &is.shape) {
                self.shapes_within(within, &path, old, new);
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
        let mut walk = Self {
            old: self.old.clone(),
            new: self.new.clone(),
            open: self.open.clone(),
            within: None,
            pairs: Vec::new(),
        };
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

/// Whether serde reads `null` as a value of this shape that is not none.
fn reads_null(labels: &Labels<'_>, shape: &Shape) -> bool {
    fn reads(labels: &Labels<'_>, shape: &Shape, above: &mut Vec<*const Shape>) -> bool {
        let shape = labels.resolve(shape);
        match shape {
            // One that is told by what fits it. Enums that hold each other end where they come by again.
            Shape::OneOf { .. } if above.contains(&std::ptr::from_ref(shape)) => false,
            Shape::OneOf { variants, .. } => {
                above.push(shape);
                let held = variants.iter().filter(|variant| is_untagged(variant)).map(|variant| &variant.shape);
                held.into_iter().any(|held| held.as_ref().is_none_or(|held| reads(labels, held, above)))
            }
            // A unit, or a struct like one.
            Shape::Tuple(elements) => elements.is_empty(),
            Shape::Object { members, .. } => members.is_empty(),
            shape => is_nullable(shape),
        }
    }
    reads(labels, shape, &mut Vec::new())
}

fn has_untagged(shape: &Shape) -> bool {
    matches!(shape, Shape::OneOf { variants, .. } if variants.iter().any(is_untagged))
}

fn is_untagged(variant: &Variant) -> bool {
    matches!(variant.wire, Some(Wire::Untagged(_)))
}

fn is_flattened(member: &Member) -> bool {
    matches!(member, Member::Hashed { wire: Some(Wire::Flattened), .. })
}

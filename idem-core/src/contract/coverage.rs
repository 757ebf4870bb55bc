//! What samples show of a contract: the parts that none of them has cannot drift in sight.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Contract;
use super::labels::Labels;
use super::text::{below, word};
use crate::canonical::shape::{Member, Shape, Variant};

impl Contract {
    /// What none of these preimages shows: both forms of an `Option`, each variant of an enum, an element of each list
    /// and map, each name of an enum that is a map's key, a value that differs from each default. Each by its member, in
    /// the order of the contract's text.
    ///
    /// A default counts where the member is absent, since that is what the absence means. What a type shows in one
    /// place it shows in all.
    ///
    /// ```
    /// use idem_core::{IdempotentCommand, contract};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct OpenAccount {
    ///     holder: String,
    ///     referrer: Option<String>,
    /// }
    ///
    /// let sample = OpenAccount { holder: "Ada".into(), referrer: None };
    /// let uncovered = contract::of::<OpenAccount>().uncovered([&*sample.preimage()]);
    /// assert_eq!(uncovered, ["referrer: given"]);
    /// ```
    pub fn uncovered<'p>(&self, preimages: impl IntoIterator<Item = &'p str>) -> Vec<String> {
        let mut shown = Shown { labels: Labels::of(self.command()), seen: HashSet::new() };
        for preimage in preimages {
            if let Ok(Value::Array(mut envelope)) = serde_json::from_str(preimage)
                && let Some(value) = envelope.pop()
            {
                shown.value(self.command(), &value);
            }
        }
        let mut wanted = Wanted { labels: &shown.labels, listed: HashSet::new(), aspects: Vec::new() };
        wanted.shape("", self.command());
        let missing = wanted.aspects.into_iter().filter(|(aspect, _)| !shown.seen.contains(aspect));
        missing.map(|(_, told)| told).collect()
    }
}

/// One thing that a sample can show. The place is the part's address in the contract.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Aspect {
    /// A member that is there, or a value that is not null.
    Given(*const Shape),
    /// A member that is left out, or null.
    Absent(*const Shape),
    /// A list or map with something in it.
    Filled(*const Shape),
    /// A variant.
    Is(*const Variant),
    /// A key of maps whose keys are names: their class, and the name.
    Key(String, String),
}

/// Walks values along the contract.
struct Shown<'c> {
    labels: Labels<'c>,
    seen: HashSet<Aspect>,
}

impl<'c> Shown<'c> {
    fn value(&mut self, shape: &'c Shape, value: &Value) {
        let shape = self.labels.resolve(shape);
        match (shape, value) {
            (Shape::Optional(_), Value::Null) => {
                self.seen.insert(Aspect::Absent(shape));
            }
            (Shape::Optional(inner), value) => {
                self.seen.insert(Aspect::Given(shape));
                match (self.labels.resolve(inner), value) {
                    // In brackets, because its own text can be `null`.
                    (Shape::Optional(_), Value::Array(bracketed)) if bracketed.len() == 1 => {
                        self.value(inner, &bracketed[0]);
                    }
                    _ => self.value(inner, value),
                }
            }
            (Shape::List(inner) | Shape::Unordered(inner) | Shape::Set(inner), Value::Array(elements)) => {
                for element in elements {
                    self.seen.insert(Aspect::Filled(shape));
                    self.value(inner, element);
                }
            }
            (Shape::Map { key, value: inner }, Value::Object(entries)) => {
                for (name, element) in entries {
                    self.seen.insert(Aspect::Filled(shape));
                    self.seen.insert(Aspect::Key(key.to_string(), name.clone()));
                    self.value(inner, element);
                }
            }
            (Shape::Tuple(shapes), Value::Array(elements)) => {
                shapes.iter().zip(elements).for_each(|(shape, element)| self.value(shape, element));
            }
            (Shape::Object { members, .. }, Value::Object(given)) => self.members(members, given),
            (Shape::OneOf { variants, .. }, value) => self.variant(variants, value),
            _ => {}
        }
    }

    fn members(&mut self, members: &'c [Member], given: &Map<String, Value>) {
        for member in members {
            let Member::Hashed { name, shape, default, .. } = member else { continue };
            let (place, inner) = self.member_value(shape);
            match given.get(name) {
                Some(value) => {
                    self.seen.insert(Aspect::Given(place));
                    self.value(inner, value);
                }
                None => {
                    self.seen.insert(Aspect::Absent(place));
                    if let Some(Ok(default)) = default.as_deref().map(serde_json::from_str) {
                        self.value(inner, &default);
                    }
                }
            }
        }
    }

    /// Where a member stands, and the shape of its text, which is the same whether it may be absent or not.
    fn member_value(&self, shape: &'c Shape) -> (&'c Shape, &'c Shape) {
        match self.labels.resolve(shape) {
            optional @ Shape::Optional(inner) => (optional, inner),
            _ => (shape, shape),
        }
    }

    fn variant(&mut self, variants: &'c [Variant], value: &Value) {
        let (name, held) = match value {
            Value::String(name) => (name, None),
            Value::Object(entry) => match entry.iter().next() {
                Some((name, held)) => (name, Some(held)),
                None => return,
            },
            _ => return,
        };
        if let Some(variant) = variants.iter().find(|variant| variant.name == *name) {
            self.seen.insert(Aspect::Is(variant));
            if let (Some(shape), Some(held)) = (&variant.shape, held) {
                self.value(shape, held);
            }
        }
    }
}

/// Lists what there is to be shown.
struct Wanted<'w, 'c> {
    labels: &'w Labels<'c>,
    /// Shapes that are listed already, each under the place where it came first.
    listed: HashSet<*const Shape>,
    aspects: Vec<(Aspect, String)>,
}

impl<'c> Wanted<'_, 'c> {
    fn shape(&mut self, path: &str, shape: &'c Shape) {
        let shape = self.labels.resolve(shape);
        if !self.listed.insert(shape) {
            return;
        }
        match shape {
            Shape::Optional(inner) => {
                self.want(Aspect::Given(shape), path, "a value that is not null");
                self.want(Aspect::Absent(shape), path, "null");
                self.shape(path, inner);
            }
            Shape::List(inner) | Shape::Unordered(inner) | Shape::Set(inner) => {
                self.want(Aspect::Filled(shape), path, "something in it");
                self.shape(&format!("{path}[]"), inner);
            }
            Shape::Map { key, value: inner } => {
                self.want(Aspect::Filled(shape), path, "something in it");
                for (told, name) in names(key) {
                    self.want(Aspect::Key(key.to_string(), name), path, &format!("the key `{told}`"));
                }
                self.shape(&format!("{path}[]"), inner);
            }
            Shape::Tuple(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.shape(&below(path, &index.to_string()), element);
                }
            }
            Shape::Object { members, .. } => members.iter().for_each(|member| self.member(path, member)),
            Shape::OneOf { variants, .. } => {
                for variant in variants {
                    let name = word(&variant.name);
                    self.want(Aspect::Is(variant), path, &format!("the variant `{name}`"));
                    if let Some(shape) = &variant.shape {
                        self.shape(&below(path, &name), shape);
                    }
                }
            }
            Shape::Leaf { .. } | Shape::Nothing | Shape::Named { .. } | Shape::Again(_) => {}
        }
    }

    fn member(&mut self, path: &str, member: &'c Member) {
        let Member::Hashed { name, shape, default, .. } = member else { return };
        let path = below(path, &word(name));
        match (self.labels.resolve(shape), default) {
            (optional @ Shape::Optional(inner), default) => {
                let given = if default.is_some() { "given, other than its default" } else { "given" };
                self.want(Aspect::Given(optional), &path, given);
                self.want(Aspect::Absent(optional), &path, "left out");
                self.shape(&path, inner);
            }
            (_, Some(_)) => {
                self.want(Aspect::Given(shape), &path, "other than its default");
                self.shape(&path, shape);
            }
            (_, None) => self.shape(&path, shape),
        }
    }

    fn want(&mut self, aspect: Aspect, path: &str, told: &str) {
        let path = if path.is_empty() { "command" } else { path };
        // A type that holds itself comes by again.
        if self.aspects.iter().all(|(wanted, _)| *wanted != aspect) {
            self.aspects.push((aspect, format!("{path}: {told}")));
        }
    }
}

/// The names that keys of this class are, each as the contract writes it and as it is; none where the class is open.
fn names(class: &str) -> impl Iterator<Item = (&str, String)> {
    let names = class.strip_prefix("name(").and_then(|rest| rest.strip_suffix(')'));
    let name = |word| (word, serde_json::from_str(word).unwrap_or_else(|_| str::to_owned(word)));
    names.into_iter().flat_map(|names| names.split(',')).filter(|word| !word.is_empty()).map(name)
}

//! What a type's canonical text looks like, as data: the body of a contract.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;

/// The text that every value of a type has.
///
/// Holds no Rust names. A type that appears again, or inside itself, is given in full once, under a number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A value without parts: `text`, `integer`, `decimal`, …, with the rules that normalise it.
    Leaf {
        /// The class of the type. Types of one class write the same text for the same value.
        class: Cow<'static, str>,
        /// Rules from the field's attributes, such as `uppercase` or `scale = 2`.
        rules: Vec<Cow<'static, str>>,
    },
    /// Values in order, each of the same shape.
    List(Box<Shape>),
    /// Values whose order does not count.
    Unordered(Box<Shape>),
    /// Values of which each counts once, in no order.
    Set(Box<Shape>),
    /// Values under keys.
    Map {
        /// The class of the keys.
        key: Cow<'static, str>,
        /// The shape of each value.
        value: Box<Shape>,
    },
    /// A value or none. A struct leaves such a member out; elsewhere none is `null`.
    Optional(Box<Shape>),
    /// A fixed row of values.
    Tuple(Vec<Shape>),
    /// A struct.
    Object {
        /// Whether the wire format refuses members that are not listed.
        denies_unknown: bool,
        /// Members in the order they are written in.
        members: Vec<Member>,
    },
    /// An enum.
    OneOf {
        /// Whether the wire format refuses members that are not listed.
        denies_unknown: bool,
        /// The variants by name, in UTF-16 order.
        variants: Vec<Variant>,
    },
    /// A shape that is referred to again.
    Named {
        /// Its number, counted from 1 in reading order.
        label: u32,
        /// The shape itself.
        shape: Box<Shape>,
    },
    /// A shape given before, by its number.
    Again(u32),
    /// No text at all: a member that is always left out.
    Nothing,
}

/// One member of a [`Shape::Object`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Member {
    /// Part of the hash.
    Hashed {
        /// The canonical name.
        name: String,
        /// How it comes in, if not as a member like any other.
        wire: Option<Wire>,
        /// Its value.
        shape: Shape,
        /// The canonical text of the value that the member's absence stands for.
        default: Option<String>,
    },
    /// Not part of the hash.
    Excluded {
        /// The canonical name.
        name: String,
    },
}

/// One variant of a [`Shape::OneOf`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The canonical name.
    pub name: String,
    /// How it comes in, if not by its name.
    pub wire: Option<Wire>,
    /// What it carries.
    pub shape: Option<Shape>,
}

/// What serde's attributes say of how a part comes in, where that lets two different requests be one command. The hash
/// is of what came in, so none of these moves it; a reviewer should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// `#[serde(skip)]`, `#[serde(skip_deserializing)]`: what the client sends under the name is not looked at.
    NotDeserialized,
    /// `#[serde(flatten)]`: its members come in among those of the whole.
    Flattened,
    /// `#[serde(untagged)]`: the first variant that fits is taken, and what does not fit it is left. Counts from 1 in the
    /// order in which they are tried, that of the source.
    Untagged(u32),
    /// `#[serde(other)]`: stands for every name that is not known.
    AnyOther,
}

impl Wire {
    /// What the contract's text says.
    pub fn note(self) -> Cow<'static, str> {
        match self {
            Self::NotDeserialized => "not deserialized".into(),
            Self::Flattened => "flattened".into(),
            Self::Untagged(place) => format!("untagged {place}").into(),
            Self::AnyOther => "any other".into(),
        }
    }

    /// Reads a [`note`](Self::note).
    pub(crate) fn noted(note: &str) -> Option<Self> {
        let place = note.strip_prefix("untagged ").and_then(|place| place.parse().ok());
        let known = [Self::NotDeserialized, Self::Flattened, Self::AnyOther].into_iter();
        known.chain(place.map(Self::Untagged)).find(|wire| wire.note() == note)
    }
}

impl Member {
    /// The canonical name.
    pub fn name(&self) -> &str {
        match self {
            Self::Hashed { name, .. } | Self::Excluded { name } => name,
        }
    }
}

impl Shape {
    /// A value without parts, of the given class.
    pub fn leaf(class: &'static str) -> Self {
        Self::Leaf { class: class.into(), rules: Vec::new() }
    }

    /// Whether this is a struct or enum that refuses unknown members.
    pub(crate) fn denies_unknown(&self) -> bool {
        matches!(self, Self::Object { denies_unknown: true, .. } | Self::OneOf { denies_unknown: true, .. })
    }

    /// Adds a rule to a leaf.
    #[must_use]
    pub fn with_rule(mut self, rule: impl Into<Cow<'static, str>>) -> Self {
        if let Self::Leaf { rules, .. } = &mut self {
            rules.push(rule.into());
        }
        self
    }
}

/// Collects the shapes of one contract and sees which types appear again.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By the type and its attributes. Not by their names, of which two types can have the same.
    seen: HashMap<(TypeId, TypeId), Seen>,
    count: u32,
}

#[derive(Debug)]
struct Seen {
    label: u32,
    again: bool,
}

impl Shapes {
    /// Describes a whole type.
    pub fn describe(shape: impl FnOnce(&mut Self) -> Shape) -> Shape {
        let mut shapes = Self::default();
        let mut shape = shape(&mut shapes);
        let again = shapes.seen.into_values().filter(|seen| seen.again).map(|seen| (seen.label, 0)).collect();
        Labels { new: again, count: 0 }.settle(&mut shape);
        shape
    }

    /// Describes a type with parts in full where it appears first, by number where it appears again.
    #[doc(hidden)]
    pub fn composite<T: ?Sized, A>(&mut self, shape: impl FnOnce(&mut Self) -> Shape) -> Shape {
        let key = (typeid::of::<T>(), typeid::of::<A>());
        if let Some(seen) = self.seen.get_mut(&key) {
            seen.again = true;
            return Shape::Again(seen.label);
        }
        let label = self.enter(key);
        Shape::Named { label, shape: Box::new(shape(self)) }
    }

    /// Describes a newtype: its inner shape, under a number only where the type holds itself.
    #[doc(hidden)]
    pub fn newtype<T: ?Sized, A>(&mut self, shape: impl FnOnce(&mut Self) -> Shape) -> Shape {
        let key = (typeid::of::<T>(), typeid::of::<A>());
        let shape = self.composite::<T, A>(shape);
        match shape {
            Shape::Named { shape, .. } if !self.seen[&key].again => {
                self.seen.remove(&key);
                *shape
            }
            recursive => recursive,
        }
    }

    fn enter(&mut self, key: (TypeId, TypeId)) -> u32 {
        self.count += 1;
        self.seen.insert(key, Seen { label: self.count, again: false });
        self.count
    }
}

/// Counts the labels that are referred to in reading order, and takes the others out.
struct Labels {
    new: HashMap<u32, u32>,
    count: u32,
}

impl Labels {
    fn settle(&mut self, shape: &mut Shape) {
        match shape {
            Shape::Leaf { .. } | Shape::Nothing => {}
            Shape::List(inner)
            | Shape::Unordered(inner)
            | Shape::Set(inner)
            | Shape::Optional(inner)
            | Shape::Map { value: inner, .. } => self.settle(inner),
            Shape::Tuple(elements) => elements.iter_mut().for_each(|element| self.settle(element)),
            Shape::Object { members, .. } => members.iter_mut().for_each(|member| {
                if let Member::Hashed { shape, .. } = member {
                    self.settle(shape);
                }
            }),
            Shape::OneOf { variants, .. } => {
                variants.iter_mut().filter_map(|variant| variant.shape.as_mut()).for_each(|shape| self.settle(shape));
            }
            Shape::Again(label) => *label = self.new[label],
            Shape::Named { label, shape: inner } => {
                if let Some(new) = self.new.get_mut(label) {
                    self.count += 1;
                    *new = self.count;
                    *label = self.count;
                    self.settle(inner);
                } else {
                    let inner = std::mem::replace(&mut **inner, Shape::Nothing);
                    *shape = inner;
                    self.settle(shape);
                }
            }
        }
    }
}

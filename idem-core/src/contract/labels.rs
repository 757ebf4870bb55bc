//! The shapes of a contract by their numbers.

use std::collections::HashMap;

use crate::canonical::shape::{Member, Shape};

/// Finds what a number in a contract stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels<'c>(HashMap<u32, &'c Shape>);

impl<'c> Labels<'c> {
    pub(super) fn of(shape: &'c Shape) -> Self {
        let mut labels = Self::default();
        labels.collect(shape);
        labels
    }

    /// The shape itself where `shape` is numbered or only a number. A number that stands for nothing, which a text
    /// written by hand can have, stays what it is.
    pub(super) fn resolve(&self, shape: &'c Shape) -> &'c Shape {
        let mut resolved = shape;
        for _ in 0..=self.0.len() {
            resolved = match resolved {
                Shape::Named { shape, .. } => shape,
                Shape::Again(label) => match self.0.get(label) {
                    Some(shape) => shape,
                    None => return resolved,
                },
                shape => return shape,
            };
        }
        shape
    }

    fn collect(&mut self, shape: &'c Shape) {
        if let Shape::Named { label, shape } = shape {
            self.0.insert(*label, shape);
        }
        for part in parts(shape) {
            self.collect(part);
        }
    }
}

/// The shapes right inside of one.
fn parts(shape: &Shape) -> Vec<&Shape> {
    match shape {
        Shape::Leaf { .. } | Shape::Nothing | Shape::Again(_) => Vec::new(),
        Shape::List(inner)
        | Shape::Unordered(inner)
        | Shape::Set(inner)
        | Shape::Optional(inner)
        | Shape::Map { value: inner, .. }
        | Shape::Named { shape: inner, .. } => vec![inner],
        Shape::Tuple(elements) => elements.iter().collect(),
        Shape::Object { members, .. } => members
            .iter()
            .filter_map(|member| match member {
                Member::Hashed { shape, .. } => Some(shape),
                Member::Excluded { .. } => None,
            })
            .collect(),
        Shape::OneOf { variants, .. } => variants.iter().filter_map(|variant| variant.shape.as_ref()).collect(),
    }
}

//! The text of a contract: a header, then one line per member, indented under what it belongs to.
//!
//! ```text
//! shape  = leaf | "list of " shape | "unordered list of " shape | "set of " shape
//!        | "map from " class " to " shape | "optional " shape
//!        | "tuple" block | "object" block | "one of" block | "#" number " " shape | "#" number | "nothing"
//! leaf   = class [ "(" rule { ", " rule } ")" ]
//! member = name [ "?" ] [ note ] ": " shape [ " = " default ]  |  name ": not hashed"
//! variant = name [ note ] [ ": " shape ]
//! note   = " (not deserialized)" | " (flattened)" | " (untagged)" | " (any other)"
//! ```
//!
//! A shape has at most one block, so it is always the indented lines below. `object` and `one of` carry
//! `(unknown fields denied)` where the type refuses them. A name that is no plain word is a JSON string.

use std::fmt::{self, Formatter, Write};

use super::Contract;
use crate::canonical::shape::{Member, Shape, Variant, Wire};

pub(super) fn write(contract: &Contract, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "{MAGIC}")?;
    writeln!(f, "operation: {}", word(&contract.operation))?;
    writeln!(f, "version: {}", contract.version)?;
    writeln!(f, "form: idem/{}", contract.form)?;
    writeln!(f, "unknown fields: {}\n", if contract.denies_unknown() { "denied" } else { "not denied here" })?;
    f.write_str("command: ")?;
    let mut command = contract.command.clone();
    // The header says it for the command itself.
    if let Shape::Object { denies_unknown, .. } | Shape::OneOf { denies_unknown, .. } = own_shape(&mut command) {
        *denies_unknown = false;
    }
    let block = write_shape(&command, f)?;
    write_block(block, 1, f)
}

/// What stands for a shape on one line; parts that follow below are not in it.
pub(super) fn line(shape: &Shape) -> String {
    struct Line<'s>(&'s Shape);
    impl fmt::Display for Line<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            write_shape(self.0, f).map(|_| ())
        }
    }
    Line(shape).to_string()
}

/// The shape inside a label.
pub(super) fn own_shape(shape: &mut Shape) -> &mut Shape {
    match shape {
        Shape::Named { shape, .. } => shape,
        shape => shape,
    }
}

/// Writes the shape's own line and gives back the shape whose parts follow below it.
fn write_shape<'a>(shape: &'a Shape, f: &mut Formatter<'_>) -> Result<Option<&'a Shape>, fmt::Error> {
    match shape {
        Shape::Leaf { class, rules } if rules.is_empty() => f.write_str(class)?,
        Shape::Leaf { class, rules } => write!(f, "{class}({})", rules.join(", "))?,
        Shape::List(inner) => {
            f.write_str("list of ")?;
            return write_shape(inner, f);
        }
        Shape::Unordered(inner) => {
            f.write_str("unordered list of ")?;
            return write_shape(inner, f);
        }
        Shape::Set(inner) => {
            f.write_str("set of ")?;
            return write_shape(inner, f);
        }
        Shape::Map { key, value } => {
            write!(f, "map from {key} to ")?;
            return write_shape(value, f);
        }
        Shape::Optional(inner) => {
            f.write_str("optional ")?;
            return write_shape(inner, f);
        }
        Shape::Named { label, shape } => {
            write!(f, "#{label} ")?;
            return write_shape(shape, f);
        }
        Shape::Again(label) => write!(f, "#{label}")?,
        Shape::Nothing => f.write_str("nothing")?,
        Shape::Tuple(_) => f.write_str("tuple")?,
        Shape::Object { denies_unknown, .. } => write!(f, "object{}", policy(*denies_unknown))?,
        Shape::OneOf { denies_unknown, .. } => write!(f, "one of{}", policy(*denies_unknown))?,
    }
    let has_block = matches!(shape, Shape::Tuple(_) | Shape::Object { .. } | Shape::OneOf { .. });
    Ok(has_block.then_some(shape))
}

fn write_block(shape: Option<&Shape>, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('\n')?;
    match shape {
        Some(Shape::Tuple(elements)) => {
            for (index, element) in elements.iter().enumerate() {
                write!(f, "{:1$}{index}: ", "", depth * INDENT)?;
                let block = write_shape(element, f)?;
                write_block(block, depth + 1, f)?;
            }
        }
        Some(Shape::Object { members, .. }) => {
            for member in members {
                write!(f, "{:1$}", "", depth * INDENT)?;
                write_member(member, depth, f)?;
            }
        }
        Some(Shape::OneOf { variants, .. }) => {
            for Variant { name, wire, shape } in variants {
                write!(f, "{:1$}{2}{3}", "", depth * INDENT, word(name), note(*wire))?;
                let block = match shape {
                    Some(shape) => {
                        f.write_str(": ")?;
                        write_shape(shape, f)?
                    }
                    None => None,
                };
                write_block(block, depth + 1, f)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn write_member(member: &Member, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let name = word(member.name());
    let Member::Hashed { wire, shape, default, .. } = member else {
        return writeln!(f, "{name}: {NOT_HASHED}");
    };
    let (optional, shape) = match shape {
        Shape::Optional(inner) => ("?", &**inner),
        shape => ("", shape),
    };
    write!(f, "{name}{optional}{}: ", note(*wire))?;
    let block = write_shape(shape, f)?;
    if let Some(default) = default {
        write!(f, " = {}", visible(default))?;
    }
    write_block(block, depth + 1, f)
}

fn note(wire: Option<Wire>) -> String {
    wire.map(|wire| format!(" ({})", wire.note())).unwrap_or_default()
}

fn policy(denies_unknown: bool) -> &'static str {
    if denies_unknown { UNKNOWN_DENIED } else { "" }
}

/// The path of a part inside another, as a reviewer reads it: `items[].quantity`.
pub(super) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A name as it is, or as a JSON string where it could be mistaken for something else.
pub(super) fn word(name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if plain { name.into() } else { visible(&serde_json::Value::from(name).to_string()) }
}

/// Canonical JSON text in a form that a reviewer can trust: still the same JSON, but every character beyond ASCII is a
/// `\u` escape, since it could hide, or pass for another. Blanks always stand between quotes.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a String takes everything");
                }
            }
        }
    }
    out
}

pub(super) const MAGIC: &str = "idem contract 1";
pub(super) const NOT_HASHED: &str = "not hashed";
pub(super) const UNKNOWN_DENIED: &str = "(unknown fields denied)";
pub(super) const INDENT: usize = 2;

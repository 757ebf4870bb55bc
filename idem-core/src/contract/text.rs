//! The text of a contract: a header, then one line per member, indented under what it belongs to.
//!
//! ```text
//! shape  = leaf | "list of " shape | "unordered list of " shape | "set of " shape
//!        | "map from " class " to " shape | "optional " shape
//!        | "tuple" block | "object" block | "one of" block | "#" number " " shape | "#" number | "nothing"
//! leaf   = class [ "(" rule { ", " rule } ")" ]
//!          where a class or rule of the user's own that is no plain text is a JSON string
//! member = name [ "?" ] [ note ] ": " shape [ " = " default ]  |  name ": not hashed"
//! variant = name [ note ] [ ": " shape ]
//! note   = " (not deserialized)" | " (flattened)" | " (untagged " place ")" | " (any other)"
//! ```
//!
//! A shape has at most one block, so it is always the indented lines below. `object` and `one of` carry
//! `(unknown fields denied)` where the type refuses them. A name that is no plain word is a JSON string.

use std::borrow::Cow;
use std::fmt::{self, Formatter, Write};

use super::Contract;
use crate::canonical::quoted;
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
        Shape::Leaf { class, rules } => {
            f.write_str(&plain_or_quoted(class, is_class))?;
            if !rules.is_empty() {
                let rules = rules.iter().map(|rule| plain_or_quoted(rule, is_rule));
                write!(f, "({})", rules.collect::<Vec<_>>().join(", "))?;
            }
        }
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
            write!(f, "map from {} to ", plain_or_quoted(key, is_key))?;
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

fn plain_or_quoted(text: &str, is_plain: fn(&str) -> bool) -> Cow<'_, str> {
    if is_plain(text) { text.into() } else { quoted(text).into() }
}

/// Whether this is a class that no other shape is written as.
pub(super) fn is_class(class: &str) -> bool {
    let is_text = class.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b' ' | b'-'));
    let is_shape = ["nothing", "tuple", "object", "one of"].contains(&class)
        || ["list of ", "unordered list of ", "set of ", "map from ", "optional "]
            .iter()
            .any(|of| class.starts_with(of));
    is_text && is_framed(class) && !is_shape
}

/// Whether this is a rule that ends where it is written to end.
pub(super) fn is_rule(rule: &str) -> bool {
    let is_text = rule.bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'(' | b')' | b',' | b'\\'));
    is_text && is_framed(rule) && !rule.starts_with('"')
}

/// Whether this is a class of keys: one of values, or names in brackets as the derive lists them.
pub(super) fn is_key(key: &str) -> bool {
    let names = key.strip_prefix("name(").and_then(|names| names.strip_suffix(')'));
    let is_of_list = |b| matches!(b, b'_' | b'-' | b'.' | b',' | b'"' | b'\\') || u8::is_ascii_alphanumeric(&b);
    names.map_or_else(|| is_class(key) && !key.contains(" to "), |names| names.bytes().all(is_of_list))
}

/// Whether nothing hides at the ends.
fn is_framed(text: &str) -> bool {
    !text.is_empty() && text.trim_matches(' ') == text
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

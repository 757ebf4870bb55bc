//! Reads the text of a contract back.

use std::iter::Peekable;
use std::str::Lines;

use super::Contract;
use super::text::{INDENT, MAGIC, NOT_HASHED, UNKNOWN_DENIED, is_class, is_key, is_rule, own_shape};
use crate::canonical::shape::{Member, Shape, Variant, Wire};

/// Reads what a [`Contract`] displays as.
///
/// # Errors
///
/// [`ParseError`] with the line that is not part of the grammar.
pub fn parse(text: &str) -> Result<Contract, ParseError> {
    let mut parser = Parser { lines: text.lines().peekable(), number: 0 };
    parser.exactly(MAGIC)?;
    let operation = parser.header("operation: ")?;
    let operation = parser.name(operation)?;
    let version = parser.header("version: ")?.parse().map_err(|_| parser.error("a version is a number"))?;
    let form = parser.header("form: idem/")?.parse().map_err(|_| parser.error("a form is a number"))?;
    let denies_unknown = match parser.header("unknown fields: ")? {
        "denied" => true,
        "not denied here" => false,
        _ => return Err(parser.error("unknown fields are `denied` or `not denied here`")),
    };
    parser.exactly("")?;
    let line = parser.header("command: ")?;
    let (mut command, rest) = parser.shape(line, 1)?;
    if !rest.is_empty() || parser.lines.peek().is_some() {
        return Err(parser.error("nothing follows the command"));
    }
    if let Shape::Object { denies_unknown: own, .. } | Shape::OneOf { denies_unknown: own, .. } =
        own_shape(&mut command)
    {
        *own = denies_unknown;
    } else if denies_unknown {
        return Err(parser.error("only an object can deny unknown fields"));
    }
    Ok(Contract { operation, version, form, command })
}

/// A line that is not part of a contract's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the contract: {reason}")]
pub struct ParseError {
    line: usize,
    reason: &'static str,
}

impl ParseError {
    /// The number of the line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

struct Parser<'t> {
    lines: Peekable<Lines<'t>>,
    number: usize,
}

impl<'t> Parser<'t> {
    fn exactly(&mut self, expected: &str) -> Result<(), ParseError> {
        let line = self.next()?;
        if line == expected { Ok(()) } else { Err(self.error("not the line expected here")) }
    }

    fn header(&mut self, key: &str) -> Result<&'t str, ParseError> {
        self.next()?.strip_prefix(key).ok_or_else(|| self.error("not the line expected here"))
    }

    fn next(&mut self) -> Result<&'t str, ParseError> {
        self.number += 1;
        self.lines.next().ok_or_else(|| self.error("the text ends too soon"))
    }

    /// The next line of a block, without its indentation.
    fn block_line(&mut self, depth: usize) -> Result<Option<&'t str>, ParseError> {
        let Some(line) = self.lines.peek() else { return Ok(None) };
        let indent = line.len() - line.trim_start_matches(' ').len();
        if indent < depth * INDENT {
            return Ok(None);
        }
        let line = self.next()?;
        if indent > depth * INDENT {
            return Err(self.error("indented too far"));
        }
        Ok(Some(&line[indent..]))
    }

    /// A shape at the start of `line`, with its block below; gives back what follows it on the line. That is at most
    /// a default, which has to be read before the block.
    fn shape(&mut self, line: &'t str, depth: usize) -> Result<(Shape, &'t str), ParseError> {
        let (line, rest) = split_default(line);
        Ok((self.shape_alone(line, depth)?, rest))
    }

    fn shape_alone(&mut self, line: &'t str, depth: usize) -> Result<Shape, ParseError> {
        if let Some(inner) = line.strip_prefix("list of ") {
            return Ok(Shape::List(Box::new(self.shape_alone(inner, depth)?)));
        }
        if let Some(inner) = line.strip_prefix("unordered list of ") {
            return Ok(Shape::Unordered(Box::new(self.shape_alone(inner, depth)?)));
        }
        if let Some(inner) = line.strip_prefix("set of ") {
            return Ok(Shape::Set(Box::new(self.shape_alone(inner, depth)?)));
        }
        if let Some(inner) = line.strip_prefix("optional ") {
            return Ok(Shape::Optional(Box::new(self.shape_alone(inner, depth)?)));
        }
        if let Some(map) = line.strip_prefix("map from ") {
            let (key, value) = map.split_once(" to ").ok_or_else(|| self.error("a map is `map from … to …`"))?;
            let key = self.plain_or_quoted(key, is_key, "not a class of keys")?.into();
            return Ok(Shape::Map { key, value: Box::new(self.shape_alone(value, depth)?) });
        }
        if let Some(reference) = line.strip_prefix('#') {
            let (label, shape) = reference.split_once(' ').map_or((reference, None), |(l, s)| (l, Some(s)));
            let label = label.parse().map_err(|_| self.error("a label is `#` and a number"))?;
            return Ok(match shape {
                Some(shape) => Shape::Named { label, shape: Box::new(self.shape_alone(shape, depth)?) },
                None => Shape::Again(label),
            });
        }
        let (plain, denies_unknown) = line.strip_suffix(UNKNOWN_DENIED).map_or((line, false), |line| (line, true));
        match plain {
            "nothing" => Ok(Shape::Nothing),
            "tuple" => self.tuple(depth),
            "object" => self.object(denies_unknown, depth),
            "one of" => self.one_of(denies_unknown, depth),
            _ => self.leaf(line),
        }
    }

    fn leaf(&mut self, line: &str) -> Result<Shape, ParseError> {
        let end = if line.starts_with('"') { string_end(line) } else { line.find('(') };
        let (class, rest) = line.split_at(end.unwrap_or(line.len()));
        let class = self.plain_or_quoted(class, is_class, "not a shape")?;
        if rest.is_empty() {
            return Ok(Shape::Leaf { class: class.into(), rules: Vec::new() });
        }
        let rules = rest.strip_prefix('(').and_then(|rules| rules.strip_suffix(')'));
        let rules = rules.ok_or_else(|| self.error("rules stand in brackets"))?.split(", ");
        let rule = |rule| Ok(self.plain_or_quoted(rule, is_rule, "not a rule")?.into());
        Ok(Shape::Leaf { class: class.into(), rules: rules.map(rule).collect::<Result<_, _>>()? })
    }

    /// A text as it is where it is plain, or the JSON string of it.
    fn plain_or_quoted(
        &self,
        text: &str,
        is_plain: fn(&str) -> bool,
        otherwise: &'static str,
    ) -> Result<String, ParseError> {
        match serde_json::from_str(text) {
            Ok(serde_json::Value::String(quoted)) => Ok(quoted),
            _ if is_plain(text) => Ok(text.to_owned()),
            _ => Err(self.error(otherwise)),
        }
    }

    fn tuple(&mut self, depth: usize) -> Result<Shape, ParseError> {
        let mut elements = Vec::new();
        while let Some(line) = self.block_line(depth)? {
            let (index, shape) = line.split_once(": ").ok_or_else(|| self.error("an element is `index: shape`"))?;
            if index != elements.len().to_string() {
                return Err(self.error("elements are counted from 0"));
            }
            elements.push(self.shape_alone(shape, depth + 1)?);
        }
        Ok(Shape::Tuple(elements))
    }

    fn object(&mut self, denies_unknown: bool, depth: usize) -> Result<Shape, ParseError> {
        let mut members = Vec::new();
        while let Some(line) = self.block_line(depth)? {
            let (name, rest) = self.split_name(line)?;
            if rest.strip_prefix(": ") == Some(NOT_HASHED) {
                members.push(Member::Excluded { name });
                continue;
            }
            let (optional, rest) = rest.strip_prefix('?').map_or((false, rest), |rest| (true, rest));
            let (wire, rest) = self.split_note(rest)?;
            let shape = rest.strip_prefix(": ").ok_or_else(|| self.error("a member is `name: shape`"))?;
            let (shape, default) = self.shape(shape, depth + 1)?;
            let shape = if optional { Shape::Optional(Box::new(shape)) } else { shape };
            let default = default.strip_prefix(DEFAULT).map(unescape);
            members.push(Member::Hashed { name, wire, shape, default });
        }
        Ok(Shape::Object { denies_unknown, members })
    }

    fn one_of(&mut self, denies_unknown: bool, depth: usize) -> Result<Shape, ParseError> {
        let mut variants = Vec::new();
        while let Some(line) = self.block_line(depth)? {
            let (name, rest) = self.split_name(line)?;
            let (wire, rest) = self.split_note(rest)?;
            let shape = match rest.strip_prefix(": ") {
                Some(shape) => Some(self.shape_alone(shape, depth + 1)?),
                None if rest.is_empty() => None,
                None => return Err(self.error("a variant is `name` or `name: shape`")),
            };
            variants.push(Variant { name, wire, shape });
        }
        Ok(Shape::OneOf { denies_unknown, variants })
    }

    /// A name at the start of a line, and what follows it.
    fn split_name(&self, line: &'t str) -> Result<(String, &'t str), ParseError> {
        let end = if line.starts_with('"') {
            string_end(line).ok_or_else(|| self.error("a string without an end"))?
        } else {
            line.find(['?', ':', ' ']).unwrap_or(line.len())
        };
        Ok((self.name(&line[..end])?, &line[end..]))
    }

    /// How a part comes in, in brackets, and what follows.
    fn split_note(&self, line: &'t str) -> Result<(Option<Wire>, &'t str), ParseError> {
        let Some((note, rest)) = line.strip_prefix(" (").and_then(|line| line.split_once(')')) else {
            return Ok((None, line));
        };
        let wire = Wire::noted(note).ok_or_else(|| self.error("not a way for a part to come in"))?;
        Ok((Some(wire), rest))
    }

    fn name(&self, word: &str) -> Result<String, ParseError> {
        if word.starts_with('"') {
            serde_json::from_str(word).map_err(|_| self.error("a quoted name is a JSON string"))
        } else if word.is_empty() || word.contains(' ') {
            Err(self.error("a name is a word or a JSON string"))
        } else {
            Ok(word.into())
        }
    }

    fn error(&self, reason: &'static str) -> ParseError {
        ParseError { line: self.number, reason }
    }
}

/// Splits `shape = default`. The first one counts: a shape's own rules stand in brackets.
fn split_default(line: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b' ' if depth == 0 && line[at..].starts_with(DEFAULT) => return line.split_at(at),
            _ => {}
        }
    }
    (line, "")
}

/// Where the JSON string that starts `line` ends.
fn string_end(line: &str) -> Option<usize> {
    let mut escaped = false;
    line.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends.then_some(at + 1)
    })
}

/// Undoes [`visible`](super::visible): the canonical text again, in which only control characters are `\u` escapes.
fn unescape(visible: &str) -> String {
    let mut out = String::with_capacity(visible.len());
    let mut units = Vec::new();
    let mut rest = visible;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        while let Some(unit) = escaped_unit(rest) {
            units.push(unit);
            rest = &rest[6..];
        }
        if units.is_empty() {
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }
    out + rest
}

/// The code unit of a `\u` escape that only `visible` writes.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| *unit >= 0x7F)
}

const DEFAULT: &str = " = ";

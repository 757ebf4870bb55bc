//! Text: NFC as of Unicode 16, RFC 8785 escapes, the rest raw UTF-8.

mod plain;

use std::borrow::Cow;

use plain::first_special;
pub(crate) use plain::{copy_plain, is_plain};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::compare::same_text;
use super::default::{AcceptsDefault, Single, own_values};
use super::unicode16::is_unassigned;
use super::{Canonical, MapKey, Shape, Shapes, Sink, lowercase, none, trim, uppercase, verbatim};

/// What happens to text before it is escaped.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    trim: bool,
    normalise: bool,
    case: Case,
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    AsSent,
    Upper,
    Lower,
}

impl Rules {
    const fn trim(self) -> Self {
        Self { trim: true, ..self }
    }
}

pub(super) const VERBATIM: Rules = Rules { trim: false, normalise: false, case: Case::AsSent };
const PLAIN: Rules = Rules { normalise: true, ..VERBATIM };
const UPPERCASE: Rules = Rules { case: Case::Upper, ..PLAIN };
const LOWERCASE: Rules = Rules { case: Case::Lower, ..PLAIN };

/// Writes a JSON string.
#[inline]
pub(super) fn write_text<S: Sink + ?Sized>(text: &str, rules: Rules, sink: &mut S) {
    let text = if rules.trim { text.trim_ascii() } else { text };
    let is_written = match rules.case {
        Case::AsSent => sink.put_text(text.as_bytes()),
        Case::Upper | Case::Lower if text.len() > CODE => false,
        Case::Upper | Case::Lower => {
            let mut code = [0; CODE];
            for (code, byte) in code.iter_mut().zip(text.bytes()) {
                *code = if rules.case == Case::Upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
            }
            sink.put_text(&code[..text.len()])
        }
    };
    if !is_written {
        write_quoted(text, rules, sink);
    }
}

/// The longest text in a case that is made on the stack first: currencies, countries and their like are short.
const CODE: usize = 16;

#[inline(never)]
fn write_quoted<S: Sink + ?Sized>(text: &str, rules: Rules, sink: &mut S) {
    sink.put(b"\"");
    write_inner(text, rules, sink);
    sink.put(b"\"");
}

/// Escapes while the text is ASCII, which is NFC as it stands, and leaves the rest to [`write_beyond_ascii`].
#[inline]
fn write_inner<S: Sink + ?Sized>(text: &str, rules: Rules, sink: &mut S) {
    match first_special(text.as_bytes()) {
        None => write_run(text.as_bytes(), rules.case, sink),
        Some(at) => write_special(text, at, rules, sink),
    }
}

/// Writes text whose first byte that is not plain stands at `first`.
fn write_special<S: Sink + ?Sized>(text: &str, first: usize, rules: Rules, sink: &mut S) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(first) {
        if is_plain(byte) {
            continue;
        }
        if byte < 0x80 {
            write_run(&bytes[written..at], rules.case, sink);
            write_escape(byte, sink);
            written = at + 1;
        } else if rules.normalise {
            // The character before may compose with this one. One that needed an escape never does.
            let from = at.saturating_sub(1).max(written);
            write_run(&bytes[written..from], rules.case, sink);
            return write_beyond_ascii(&text[from..], rules.case, sink);
        }
    }
    write_run(&bytes[written..], rules.case, sink);
}

#[cold]
fn write_beyond_ascii<S: Sink + ?Sized>(text: &str, case: Case, sink: &mut S) {
    let as_it_is = Rules { case, ..VERBATIM };
    if is_nfc_or_frozen(text) {
        return write_inner(text, as_it_is, sink);
    }
    let mut chunk = Chunk { bytes: [0; CHUNK], len: 0 };
    let mut write = |c: char| {
        if chunk.len + c.len_utf8() > CHUNK {
            write_inner(chunk.as_str(), VERBATIM, sink);
            chunk.len = 0;
        }
        chunk.len += c.encode_utf8(&mut chunk.bytes[chunk.len..]).len();
    };
    match case {
        Case::AsSent => text.nfc().for_each(&mut write),
        // Upper case can make a pair composable: i with a dot above stays two characters, I with one is U+0130.
        Case::Upper => text.nfc().map(|c| c.to_ascii_uppercase()).nfc().for_each(&mut write),
        Case::Lower => text.nfc().map(|c| c.to_ascii_lowercase()).nfc().for_each(&mut write),
    }
    write_inner(chunk.as_str(), VERBATIM, sink);
}

/// Whether the text is in NFC, or holds a code point that Unicode 16 had not assigned. Such text stays as it is: what
/// NFC makes of it depends on the release of the tables, and an upgrade must not move a hash.
fn is_nfc_or_frozen(text: &str) -> bool {
    // U+0300 is the first character that NFC can change or compose; everything below is assigned.
    const LEAD_OF_U0300: u8 = 0xCC;
    text.bytes().all(|b| b < LEAD_OF_U0300)
        || text.chars().any(is_unassigned)
        || is_nfc_quick(text.chars()) == IsNormalized::Yes
}

/// Writes bytes that need no escape.
#[inline]
fn write_run<S: Sink + ?Sized>(run: &[u8], case: Case, sink: &mut S) {
    match case {
        Case::AsSent => sink.put(run),
        Case::Upper | Case::Lower => {
            for part in run.chunks(CHUNK) {
                let mut changed = [0; CHUNK];
                let changed = &mut changed[..part.len()];
                changed.copy_from_slice(part);
                match case {
                    Case::Lower => changed.make_ascii_lowercase(),
                    _ => changed.make_ascii_uppercase(),
                }
                sink.put(changed);
            }
        }
    }
}

/// RFC 8785, section 3.2.2.2.
#[cold]
fn write_escape<S: Sink + ?Sized>(byte: u8, sink: &mut S) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => sink.put(br#"\""#),
        b'\\' => sink.put(br"\\"),
        0x08 => sink.put(br"\b"),
        b'\t' => sink.put(br"\t"),
        b'\n' => sink.put(br"\n"),
        0x0C => sink.put(br"\f"),
        b'\r' => sink.put(br"\r"),
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|n| HEX[usize::from(n)]);
            sink.put(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    }
}

/// Characters on their way out of the normaliser.
struct Chunk {
    bytes: [u8; CHUNK],
    len: usize,
}

impl Chunk {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("whole characters were encoded")
    }
}

const CHUNK: usize = 64;

macro_rules! texts {
    ($($attributes:ty => $rules:expr $(; $word:literal)*,)*) => {$(
        impl Canonical<$attributes> for str {
            #[inline]
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_text(self, $rules, sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("text")$(.with_rule($word))*
            }
        }

        impl Canonical<$attributes> for String {
            #[inline]
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_text(self, $rules, sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                <str as Canonical<$attributes>>::shape(shapes)
            }
        }

        impl AcceptsDefault<&str, $attributes> for str {
            fn write_default<S: Sink + ?Sized>(default: &&str, sink: &mut S) {
                write_text(default, $rules, sink);
            }

            #[inline]
            fn is_default(&self, default: &&str) -> bool {
                is_same(self, default, $rules)
            }
        }

        impl AcceptsDefault<&str, $attributes> for String {
            fn write_default<S: Sink + ?Sized>(default: &&str, sink: &mut S) {
                write_text(default, $rules, sink);
            }

            #[inline]
            fn is_default(&self, default: &&str) -> bool {
                is_same(self, default, $rules)
            }
        }

        impl Single<$attributes> for str {}
        impl Single<$attributes> for String {}

        /// A text of one character.
        impl Canonical<$attributes> for char {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_text(self.encode_utf8(&mut [0; 4]), $rules, sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                <str as Canonical<$attributes>>::shape(shapes)
            }
        }

        own_values!([] char as $attributes;);
    )*};
}

texts! {
    none => PLAIN,
    uppercase => UPPERCASE; "uppercase",
    lowercase => LOWERCASE; "lowercase",
    trim => PLAIN.trim(); "trim",
    (trim, uppercase) => UPPERCASE.trim(); "trim"; "uppercase",
    (trim, lowercase) => LOWERCASE.trim(); "trim"; "lowercase",
    verbatim => VERBATIM; "verbatim",
}

/// Whether a text equals a default under the same rules, told without writing either where both are ASCII.
#[inline]
fn is_same(text: &str, default: &str, rules: Rules) -> bool {
    let [a, b] = [text, default].map(|text| if rules.trim { text.trim_ascii() } else { text });
    if a == b {
        return true;
    }
    if a.is_ascii() && b.is_ascii() {
        return rules.case != Case::AsSent && a.eq_ignore_ascii_case(b);
    }
    same_text(|sink| write_text(a, rules, sink), |sink| write_text(b, rules, sink))
}

impl MapKey for str {
    fn class() -> Cow<'static, str> {
        "text".into()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        read(self)
    }
}

impl MapKey for String {
    fn class() -> Cow<'static, str> {
        "text".into()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        read(self)
    }
}

impl MapKey for char {
    fn class() -> Cow<'static, str> {
        "text".into()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        read(self.encode_utf8(&mut [0; 4]))
    }
}

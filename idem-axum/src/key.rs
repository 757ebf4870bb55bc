//! The `Idempotency-Key` header, read strictly: what cannot be read is refused, never taken for absent.

use http::{HeaderMap, HeaderName};
use idem_core::{IdempotencyKey, InvalidKey};

use crate::problem::{Code, Problem};

/// The header that carries the key.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Why a request has no key. The texts go to the client, and never hold the header's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoKey {
    #[error("the request needs an Idempotency-Key header, with a name of its own for each logical request")]
    Missing,
    #[error("the Idempotency-Key header is there {0} times; one is needed, since two cannot be told apart")]
    Repeated(usize),
    #[error("the Idempotency-Key begins with a quotation mark that nothing closes")]
    Unclosed,
    #[error("the Idempotency-Key has something after its closing quotation mark; parameters are not taken")]
    Parameters,
    #[error("the Idempotency-Key has an escape; a key needs none")]
    Escape,
    #[error(transparent)]
    Invalid(#[from] InvalidKey),
}

impl NoKey {
    pub(crate) fn problem(self) -> Problem {
        let code = if self == Self::Missing { Code::KeyMissing } else { Code::KeyInvalid };
        Problem::new(code, self.to_string())
    }
}

/// Reads the key, a structured-field string (`"8e03…"`, RFC 9651) or bare: both are the same key.
pub(crate) fn read(headers: &HeaderMap) -> Result<IdempotencyKey, NoKey> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let line = lines.next().ok_or(NoKey::Missing)?;
    match lines.count() {
        0 => parse(line.as_bytes()),
        more => Err(NoKey::Repeated(more + 1)),
    }
}

fn parse(line: &[u8]) -> Result<IdempotencyKey, NoKey> {
    // HTTP/1.1 servers take the blanks around a value away; other ways into a service need not.
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    let line = &line[start..end];
    let Some(quoted) = line.strip_prefix(b"\"") else {
        return Ok(IdempotencyKey::from_bytes(line)?);
    };
    let close = quoted.iter().position(|&byte| byte == b'"').ok_or(NoKey::Unclosed)?;
    let (text, rest) = (&quoted[..close], &quoted[close + 1..]);
    if text.contains(&b'\\') {
        return Err(NoKey::Escape);
    }
    if !rest.is_empty() {
        return Err(NoKey::Parameters);
    }
    Ok(IdempotencyKey::from_bytes(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_bare_are_one_key() {
        let bare = parse(b"8e03978e").unwrap();
        for line in [&b"\"8e03978e\""[..], b"  8e03978e\t", b" \"8e03978e\" "] {
            assert_eq!(parse(line).unwrap(), bare);
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_reason() {
        let character = |at, byte| NoKey::Invalid(InvalidKey::Character { at, byte });
        for (line, reason) in [
            (&b""[..], NoKey::Invalid(InvalidKey::Empty)),
            (b" \t", NoKey::Invalid(InvalidKey::Empty)),
            (b"\"\"", NoKey::Invalid(InvalidKey::Empty)),
            (b"\"", NoKey::Unclosed),
            (b"\"a", NoKey::Unclosed),
            (b"a\"", character(1, b'"')),
            (b"\"a\";p=1", NoKey::Parameters),
            (b"\"a\", \"b\"", NoKey::Parameters),
            (b"\"a\\\"b\"", NoKey::Escape),
            (b"\"a\\\\b\"", NoKey::Escape),
            (b"a;p=1", character(1, b';')),
            (b"a,b", character(1, b',')),
            (b"a\\b", character(1, b'\\')),
            (b"a b", character(1, b' ')),
            (b"\"a b\"", character(1, b' ')),
            (b"\" a\"", character(0, b' ')),
            (b"k\xC3\xA9", character(1, 0xC3)),
            (b"\xFF", character(0, 0xFF)),
            (b"a\0b", character(1, 0)),
        ] {
            let text = String::from_utf8_lossy(line);
            assert_eq!(parse(line), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn length_is_counted_without_the_quotation_marks() {
        let longest = "k".repeat(255);
        assert!(parse(longest.as_bytes()).is_ok());
        assert!(parse(format!("\"{longest}\"").as_bytes()).is_ok());
        assert_eq!(parse(format!("{longest}k").as_bytes()), Err(NoKey::Invalid(InvalidKey::TooLong(256))));
    }
}

//! Who asks, and under which name: [`Tenant`], [`IdempotencyKey`] and the [`Scope`] that one record has.

use std::fmt;
use std::sync::Arc;

/// The name a client gives to one logical request, so that a second request can be told to be the same.
///
/// 1 to 255 characters of visible ASCII (0x21 to 0x7E) without `"`, `\`, `,` and `;`: what every store, log
/// and structured-field string carries unchanged. Compared byte by byte, in every store. Nothing is taken away from a
/// text: blanks around it are refused here, while those around a header's value are HTTP's and never get here.
///
/// `Debug` shows only the length: a key is a client's secret in so far as knowing it lets one ask for the answer.
///
/// ```
/// use idem_core::IdempotencyKey;
///
/// let key: IdempotencyKey = "order-1041-invoice-1".parse()?;
/// assert_eq!(key.as_str(), "order-1041-invoice-1");
/// assert!("a b".parse::<IdempotencyKey>().is_err());
/// # Ok::<(), idem_core::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(Arc<str>);

/// Why a text is no [`IdempotencyKey`]. It never holds the text: refusals are logged and sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// No character at all.
    #[error("an idempotency key needs at least one character")]
    Empty,
    /// More than [`IdempotencyKey::MAX_LEN`] bytes.
    #[error("an idempotency key has at most 255 characters, this one has {0}")]
    TooLong(usize),
    /// A byte outside of the alphabet, and where it stands (0 is the first).
    #[error(
        "an idempotency key has visible ASCII characters (0x21 to 0x7E) without `\"`, `\\`, `,` and `;`; byte {at} is 0x{byte:02X}"
    )]
    Character {
        /// Index of the byte.
        at: usize,
        /// The byte.
        byte: u8,
    },
}

impl IdempotencyKey {
    /// The longest legal key, in bytes (each character is one byte).
    pub const MAX_LEN: usize = 255;

    /// Reads a key from bytes as they came.
    ///
    /// # Errors
    /// [`InvalidKey`], saying what is wrong and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidKey> {
        if bytes.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if bytes.len() > Self::MAX_LEN {
            return Err(InvalidKey::TooLong(bytes.len()));
        }
        let legal = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b',' | b';');
        if let Some(at) = bytes.iter().position(|&byte| !legal(byte)) {
            return Err(InvalidKey::Character { at, byte: bytes[at] });
        }
        Ok(Self(bytes.iter().map(|&byte| char::from(byte)).collect::<String>().into()))
    }

    /// A key that nobody used before.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }

    /// The key's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for IdempotencyKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({} bytes)", self.0.len())
    }
}

/// Whose key it is: a stable principal of the application, a customer account for instance.
///
/// Two tenants never share a record. It must not come from a credential that rotates (the retry after the rotation
/// would run again), nor from a header that anyone can send. A principal below the tenant may be part of its text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

/// Why a text is no [`Tenant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTenant {
    /// No character: an unknown caller is a refusal, never a bucket that all unknown callers share.
    #[error("a tenant needs at least one character; a caller without one must be refused")]
    Empty,
    /// More than [`Tenant::MAX_LEN`] bytes.
    #[error("a tenant has at most 255 bytes, this one has {0}")]
    TooLong(usize),
    /// A control character (NUL does not fit a PostgreSQL text).
    #[error("a tenant has no control characters")]
    Control,
}

impl Tenant {
    /// The longest tenant, in bytes of UTF-8.
    pub const MAX_LEN: usize = 255;

    /// Names a tenant.
    ///
    /// # Errors
    /// [`InvalidTenant`] for an empty text, one over [`Self::MAX_LEN`] bytes, or one with a control character.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidTenant> {
        let text = text.as_ref();
        if text.is_empty() {
            return Err(InvalidTenant::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(InvalidTenant::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidTenant::Control);
        }
        Ok(Self(text.into()))
    }

    /// The tenant's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Tenant {
    type Err = InvalidTenant;

    fn from_str(text: &str) -> Result<Self, InvalidTenant> {
        Self::new(text)
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant({:?})", &*self.0)
    }
}

/// What one record belongs to: (tenant, operation, key).
///
/// The operation is the literal of the derive, so the same key may be used once for a payment and once for a refund.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    tenant: Tenant,
    operation: Arc<str>,
    key: IdempotencyKey,
}

impl Scope {
    /// The scope of `key` for one tenant and operation.
    #[must_use]
    pub fn new(tenant: Tenant, operation: &str, key: IdempotencyKey) -> Self {
        Self { tenant, operation: operation.into(), key }
    }

    /// Whose key it is.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What the command does, as the derive names it.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The client's name for the request.
    #[must_use]
    pub fn key(&self) -> &IdempotencyKey {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_a_keys_or_refused_with_its_place() {
        for byte in 0..=u8::MAX {
            let read = IdempotencyKey::from_bytes(&[b'a', byte, b'b']);
            let legal = (0x21..=0x7E).contains(&byte) && !b"\"\\,;".contains(&byte);
            let expected = if legal { Ok(()) } else { Err(InvalidKey::Character { at: 1, byte }) };
            assert_eq!(read.map(|_| ()), expected, "0x{byte:02X}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_reason() {
        let character = |at, byte| InvalidKey::Character { at, byte };
        for (text, reason) in [
            ("", InvalidKey::Empty),
            (" ", character(0, b' ')),
            (" k", character(0, b' ')),
            ("k ", character(1, b' ')),
            ("k\t", character(1, b'\t')),
            ("k\r\n", character(1, b'\r')),
            ("k\0", character(1, 0)),
            ("\u{7f}", character(0, 0x7F)),
            ("k\u{a0}", character(1, 0xC2)),
            ("\"k\"", character(0, b'"')),
        ] {
            assert_eq!(text.parse::<IdempotencyKey>(), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn lengths_from_1_to_255_are_keys() {
        for (length, expected) in [(1, Ok(())), (255, Ok(())), (256, Err(InvalidKey::TooLong(256)))] {
            assert_eq!("k".repeat(length).parse::<IdempotencyKey>().map(|_| ()), expected);
        }
    }
}

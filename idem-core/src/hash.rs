//! The hash that a record keeps of a command.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::canonical::{Sink, copy_plain};

/// The canonical form this build writes: the `1` of `idem/1`.
pub const FORM: u16 = 1;

/// SHA-256 of a command's canonical text, with the rules it was taken by.
///
/// As text: `idem1.VERSION.HEX`, where `idem1` is the canonical form and VERSION the command's contract version.
/// Stores keep the three parts and bring them back with [`from_parts`](Self::from_parts).
///
/// ```
/// use idem_core::CommandHash;
///
/// let text = "idem1.1.f5847a3bb1907ae6fa0d0970ab6f7e528817052a743f8c4ed7da8545d647548d";
/// let hash: CommandHash = text.parse()?;
/// assert_eq!((hash.form(), hash.version()), (1, 1));
/// assert_eq!(hash.to_string(), text);
/// # Ok::<(), idem_core::InvalidHash>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandHash {
    form: u16,
    version: u32,
    digest: [u8; 32],
}

impl CommandHash {
    /// Puts a stored hash together again.
    ///
    /// # Errors
    ///
    /// [`InvalidHash`] when `form` is 0, `version` is outside `1..=2^31-1`, or `digest` is not 32 bytes. A form or
    /// version that this build does not know is no error here: see [`Verdict::Newer`].
    pub fn from_parts(form: u16, version: u32, digest: impl AsRef<[u8]>) -> Result<Self, InvalidHash> {
        let digest = digest.as_ref();
        let digest = digest.try_into().map_err(|_| InvalidHash::Digest { len: digest.len() })?;
        if form == 0 {
            return Err(InvalidHash::Form);
        }
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(InvalidHash::Version { version });
        }
        Ok(Self { form, version, digest })
    }

    /// The canonical form the text followed. This build writes [`FORM`].
    pub fn form(&self) -> u16 {
        self.form
    }

    /// The version of the command's contract.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The 32 bytes of SHA-256.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Takes the hash of the text that `write` streams, if it says that there is one.
    pub(crate) fn of(version: u32, write: impl FnOnce(&mut Hasher) -> bool) -> Option<Self> {
        let mut hasher = Hasher { sha: Sha256::new(), held: [0; HELD], len: 0 };
        if !write(&mut hasher) {
            return None;
        }
        hasher.sha.update(&hasher.held[..hasher.len]);
        Some(Self { form: FORM, version, digest: hasher.sha.finalize().into() })
    }
}

impl fmt::Display for CommandHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "idem{}.{}.", self.form, self.version)?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CommandHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CommandHash {
    type Err = InvalidHash;

    /// Reads what [`Display`](fmt::Display) writes, and only that: one hash has one text.
    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        let parts = text.strip_prefix("idem").and_then(|rest| rest.split_once('.'));
        let (form, (version, hex)) =
            parts.and_then(|(form, rest)| Some((form, rest.split_once('.')?))).ok_or(InvalidHash::Text)?;
        let mut digest = [0; 32];
        if hex.len() != 64 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidHash::Text);
        }
        for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let nibble = |b: u8| if b <= b'9' { b - b'0' } else { b - b'a' + 10 };
            *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
        }
        let form = number(form).and_then(|n| u16::try_from(n).ok()).ok_or(InvalidHash::Text)?;
        let version = number(version).ok_or(InvalidHash::Text)?;
        Self::from_parts(form, version, digest)
    }
}

/// What comparing a command with a record's hash says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same command: the record answers it.
    Same,
    /// Another command under the same key. Also when the command cannot be said in the record's version at all: a
    /// guess would replay the wrong answer.
    Different,
    /// The record was written by a newer build than this one, by rules that are not known here. Wait and ask again.
    Newer,
    /// The record was written by a version that this build no longer keeps. A person has to look.
    Retired,
}

/// Why something is not a [`CommandHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHash {
    /// The text is not `idemFORM.VERSION.HEX`.
    #[error("a command hash reads `idem1.VERSION.` and 64 lower-case hex digits")]
    Text,
    /// The canonical form is 0.
    #[error("canonical forms count from 1")]
    Form,
    /// The contract version is outside its range.
    #[error("a contract version is 1 to 2147483647, not {version}")]
    Version {
        /// The number given.
        version: u32,
    },
    /// The digest has another length than SHA-256.
    #[error("a SHA-256 digest has 32 bytes, not {len}")]
    Digest {
        /// The number of bytes given.
        len: usize,
    },
}

/// SHA-256 with a short buffer in front: canonical text comes in pieces of a few bytes, and each call into the block
/// function's own buffer costs more than copying them.
pub(crate) struct Hasher {
    sha: Sha256,
    held: [u8; HELD],
    len: usize,
}

impl Sink for Hasher {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()) {
            copy(room, bytes);
            self.len += bytes.len();
        } else {
            self.spill(bytes);
        }
    }

    #[inline]
    fn put_short(&mut self, bytes: [u8; 16], len: usize) {
        if let Some(room) = self.room(16) {
            room.copy_from_slice(&bytes);
            self.len += len;
        } else {
            self.put(&bytes[..len]);
        }
    }

    fn put_text(&mut self, text: &[u8]) -> bool {
        let Some([open, room @ .., close]) = self.room(text.len() + 2) else { return false };
        if !copy_plain(room, text) {
            return false;
        }
        (*open, *close) = (b'"', b'"');
        self.len += text.len() + 2;
        true
    }
}

impl Hasher {
    /// The next bytes that are free, if there are so many.
    #[inline(always)]
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.held.get_mut(self.len..)?.get_mut(..len)
    }

    /// Makes room: whole blocks go to the hash from where they are, and what is left moves to the front.
    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        let whole = self.len - self.len % BLOCK;
        self.sha.update(&self.held[..whole]);
        self.held.copy_within(whole..self.len, 0);
        self.len -= whole;
        match self.room(bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => {
                self.sha.update(&self.held[..self.len]);
                self.sha.update(bytes);
                self.len = 0;
            }
        }
    }
}

/// Copies bytes. Lengths of most names and numbers, where they are not known beforehand, take no call.
#[inline(always)]
fn copy(room: &mut [u8], bytes: &[u8]) {
    match bytes.len() {
        2..4 => copy_ends::<2>(room, bytes),
        4..8 => copy_ends::<4>(room, bytes),
        8..=16 => copy_ends::<8>(room, bytes),
        _ => room.copy_from_slice(bytes),
    }
}

#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    if let (Some(room), Some(bytes)) = (room.first_chunk_mut::<N>(), bytes.first_chunk()) {
        *room = *bytes;
    }
    if let (Some(room), Some(bytes)) = (room.last_chunk_mut::<N>(), bytes.last_chunk()) {
        *room = *bytes;
    }
}

/// A decimal number as `Display` writes it: no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = !text.starts_with(['+', '0']);
    plain.then(|| text.parse().ok()).flatten()
}

/// What SHA-256 takes at once.
const BLOCK: usize = 64;
/// Longer than most texts, short enough that clearing it costs little, and that hashing begins while text is written.
const HELD: usize = 4 * BLOCK;
const MAX_VERSION: u32 = i32::MAX as u32;

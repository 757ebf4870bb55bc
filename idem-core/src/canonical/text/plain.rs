//! Printable ASCII, told eight bytes at a time, and copied while it is looked at.

/// Printable ASCII that JSON takes as it is.
#[inline]
pub(crate) const fn is_plain(byte: u8) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let mut byte = 0x20;
        while byte < 0x80 {
            plain[byte] = byte != b'"' as usize && byte != b'\\' as usize;
            byte += 1;
        }
        plain
    };
    PLAIN[byte as usize]
}

/// Not zero if one of the eight bytes is not plain.
#[inline]
fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Taking `n` away brings a byte's high bit up where the byte is below `n`. Only such a byte borrows from its
    // neighbour, so that the answer as a whole is right. Bytes from 0x80 on are told by their own high bit.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n);
    // With bit 1 turned over, the quote (0x22) lies at 0x20, next to the controls, which stay among themselves.
    let control_or_quote = below(word ^ (ONES * 0x02), 0x21);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (word | control_or_quote | backslash) & HIGH
}

/// Copies text into room of its length, and says whether all of it is plain.
///
/// Most texts are short. They are taken from both ends by pieces of a known size, which overlap in the middle: a loop
/// and a call of `memcpy` would cost more than the work.
#[inline]
pub(crate) fn copy_plain(room: &mut [u8], text: &[u8]) -> bool {
    match text.len() {
        0 => true,
        1..4 => {
            let mut found = false;
            for (room, byte) in room.iter_mut().zip(text).take(3) {
                *room = *byte;
                found |= !is_plain(*byte);
            }
            !found
        }
        4..8 => copy_ends::<4>(room, text, |first, last| {
            specials(u64::from(u32::from_ne_bytes(first)) | u64::from(u32::from_ne_bytes(last)) << 32)
        }),
        8..=16 => copy_ends::<8>(room, text, |first, last| {
            specials(u64::from_ne_bytes(first)) | specials(u64::from_ne_bytes(last))
        }),
        17..=32 => copy_ends::<16>(room, text, |first, last| {
            let both = |chunk: [u8; 16]| {
                let word = u128::from_ne_bytes(chunk);
                specials(word as u64) | specials((word >> 64) as u64)
            };
            both(first) | both(last)
        }),
        _ => copy_long(room, text),
    }
}

/// A function of its own, so that the short texts need not save its registers.
#[inline(never)]
fn copy_long(room: &mut [u8], text: &[u8]) -> bool {
    room.copy_from_slice(text);
    first_special(text).is_none()
}

/// Copies the first and the last bytes of a text that is not shorter than one of the two, nor longer than both.
#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], text: &[u8], specials: impl Fn([u8; N], [u8; N]) -> u64) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) else { return false };
    if let Some(room) = room.first_chunk_mut() {
        *room = *first;
    }
    if let Some(room) = room.last_chunk_mut() {
        *room = *last;
    }
    specials(*first, *last) == 0
}

/// The place of the first byte that is not plain, looked for in words of eight.
#[inline]
pub(super) fn first_special(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in words.iter().enumerate() {
        if specials(u64::from_ne_bytes(*chunk)) != 0
            && let Some(at) = chunk.iter().position(|byte| !is_plain(*byte))
        {
            return Some(index * 8 + at);
        }
    }
    rest.iter().position(|byte| !is_plain(*byte)).map(|at| words.len() * 8 + at)
}

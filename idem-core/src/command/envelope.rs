//! What stands before a command's value in its canonical text.

use super::IdempotentCommand;
use crate::canonical::{Canonical, Sink, is_plain, write_bare};
use crate::hash::FORM;

/// `["idem/1","create_payment",1,`, put together when the program is compiled.
#[derive(Debug)]
pub struct Opening {
    text: [u8; ROOM],
    len: usize,
}

impl Opening {
    /// None: the operation's name is long, or has characters that are escaped or normalised.
    pub const fn of(operation: &str, version: u32) -> Option<Self> {
        let name = operation.as_bytes();
        if name.len() > LONGEST {
            return None;
        }
        let mut opening = Self { text: [0; ROOM], len: 0 };
        opening.push(START);
        opening.push(b"\"");
        let mut at = 0;
        while at < name.len() {
            if !is_plain(name[at]) {
                return None;
            }
            opening.push(&[name[at]]);
            at += 1;
        }
        opening.push(b"\",");
        let mut unit = 1_000_000_000;
        while unit > 0 {
            if version >= unit {
                opening.push(&[b'0' + (version / unit % 10) as u8]);
            }
            unit /= 10;
        }
        opening.push(b",");
        Some(opening)
    }

    const fn push(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            self.text[self.len] = bytes[at];
            self.len += 1;
            at += 1;
        }
    }

    // Where an opening is a constant, so is its length, and copying it is a few instructions.
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        self.text.split_at(self.len).0
    }
}

/// Writes the whole preimage of a command by its own rules. Always `true`, which is to say: it can be said in them.
pub(super) fn write_envelope<C, S>(command: &C, version: u32, sink: &mut S) -> bool
where
    C: IdempotentCommand + ?Sized,
    S: Sink + ?Sized,
{
    match const { &C::OPENING } {
        Some(opening) if version == C::VERSION => sink.put(opening.as_bytes()),
        _ => {
            sink.put(START);
            <str as Canonical>::write(C::OPERATION, sink);
            sink.put(b",");
            write_bare(version, sink);
            sink.put(b",");
        }
    }
    command.write_value_at(version, sink);
    sink.put(b"]");
    true
}

const START: &[u8] = br#"["idem/1","#;
const _: () = assert!(FORM == 1, "the form's name stands in the text");

/// The longest name that is put together beforehand.
const LONGEST: usize = 64;
const ROOM: usize = START.len() + LONGEST + br#""","#.len() + "2147483647,".len();

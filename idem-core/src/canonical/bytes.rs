//! Bytes that are their digest, and other types with a text of their own.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha2::{Digest, Sha256};

use super::attribute::digest;
use super::default::own_values;
use super::{Canonical, MapKey, Shape, Shapes, Sink};

macro_rules! digests {
    ($([$($generics:tt)*] $bytes:ty;)*) => {$(
        impl<$($generics)*> Canonical<digest> for $bytes {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_digest(&self[..], sink);
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf("bytes").with_rule("digest")
            }
        }
    )*};
}

digests! {
    [] [u8];
    [] Vec<u8>;
    [const N: usize] [u8; N];
}

fn write_digest<S: Sink + ?Sized>(bytes: &[u8], sink: &mut S) {
    sink.put(b"\"sha256:");
    put_hex(&Sha256::digest(bytes), sink);
    sink.put(b"\"");
}

fn put_hex<S: Sink + ?Sized>(bytes: &[u8], sink: &mut S) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        sink.put(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Text on the stack: addresses and ids are short, and ASCII.
struct Ascii<const ROOM: usize = 40> {
    text: [u8; ROOM],
    len: usize,
}

impl<const ROOM: usize> Ascii<ROOM> {
    fn new() -> Self {
        Self { text: [0; ROOM], len: 0 }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.len]).expect("only ASCII is put here")
    }
}

impl<const ROOM: usize> Sink for Ascii<ROOM> {
    fn put(&mut self, bytes: &[u8]) {
        self.text[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// Up to 64 bytes, as digests and keys are, need no allocation.
impl<const N: usize> MapKey for [u8; N] {
    fn class() -> Cow<'static, str> {
        "bytes".into()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        if N > 64 {
            let mut text = Vec::with_capacity(2 * N);
            put_hex(self, &mut text);
            return read(std::str::from_utf8(&text).expect("hex digits are ASCII"));
        }
        let mut text = Ascii::<128>::new();
        put_hex(self, &mut text);
        read(text.as_str())
    }
}

/// A type whose text is short, plain ASCII, and a key of maps as well.
trait Plain {
    const CLASS: &'static str;

    fn put<S: Sink + ?Sized>(&self, sink: &mut S);
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Canonical for $ty {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                sink.put(b"\"");
                Plain::put(self, sink);
                sink.put(b"\"");
            }

            fn shape(_: &mut Shapes) -> Shape {
                Shape::leaf(<Self as Plain>::CLASS)
            }
        }

        own_values!([] $ty as crate::canonical::none;);

        impl MapKey for $ty {
            fn class() -> Cow<'static, str> {
                <Self as Plain>::CLASS.into()
            }

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                let mut text: Ascii = Ascii::new();
                Plain::put(self, &mut text);
                read(text.as_str())
            }
        }
    )*};
}

plain!(IpAddr, Ipv4Addr, Ipv6Addr);

impl Plain for IpAddr {
    const CLASS: &'static str = "ip address";

    fn put<S: Sink + ?Sized>(&self, sink: &mut S) {
        match self {
            Self::V4(address) => Plain::put(address, sink),
            Self::V6(address) => Plain::put(address, sink),
        }
    }
}

impl Plain for Ipv4Addr {
    const CLASS: &'static str = "ip address";

    fn put<S: Sink + ?Sized>(&self, sink: &mut S) {
        for (index, part) in self.octets().into_iter().enumerate() {
            if index > 0 {
                sink.put(b".");
            }
            super::write_bare(part.into(), sink);
        }
    }
}

/// Eight groups of four digits. An IPv4-mapped address stays one of version 6.
impl Plain for Ipv6Addr {
    const CLASS: &'static str = "ip address";

    fn put<S: Sink + ?Sized>(&self, sink: &mut S) {
        for (index, pair) in self.octets().chunks_exact(2).enumerate() {
            if index > 0 {
                sink.put(b":");
            }
            put_hex(pair, sink);
        }
    }
}

#[cfg(feature = "uuid")]
mod uuid {
    use std::borrow::Cow;

    use uuid::Uuid;

    use super::{Ascii, Plain, own_values, put_hex};
    use crate::canonical::{Canonical, MapKey, Shape, Shapes, Sink};

    plain!(Uuid);

    /// Lower-case digits in groups of 8, 4, 4, 4 and 12.
    impl Plain for Uuid {
        const CLASS: &'static str = "uuid";

        fn put<S: Sink + ?Sized>(&self, sink: &mut S) {
            let mut rest = &self.as_bytes()[..];
            for (index, len) in [4, 2, 2, 2, 6].into_iter().enumerate() {
                if index > 0 {
                    sink.put(b"-");
                }
                let (group, after) = rest.split_at(len);
                put_hex(group, sink);
                rest = after;
            }
        }
    }
}

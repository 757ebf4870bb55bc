//! Canonical form 1: the one JSON text of a value, whatever request it came in.
//!
//! The text follows RFC 8785 (members sorted, no white space, one escape for each character) with two refinements:
//! numbers of commands are strings of exact digits, and text is in NFC. `docs/canonical-form.md` is the full
//! specification. Nothing here goes through `serde::Serialize`: what serde writes depends on features that any crate
//! of the build can switch on, and a hash must not.

mod attribute;
mod bytes;
mod collection;
mod compare;
mod composite;
mod default;
mod forward;
mod number;
mod refused;
pub mod shape;
mod text;
mod time;
mod unicode16;
#[cfg(any(feature = "float", feature = "serde_json"))]
mod value;

pub use attribute::{
    Elementwise, decimal, digest, exact, float, half_even, half_up, lowercase, ms, none, s, timestamp, trim, unordered,
    uppercase, us, verbatim,
};
pub use collection::MapKey;
pub(crate) use collection::quoted;
pub use default::{empty_list, numeric};
pub(crate) use number::write_bare;
pub use shape::{Shape, Shapes};
pub(crate) use text::{copy_plain, is_plain};

/// Where canonical text goes, piece by piece.
///
/// ```
/// use idem_core::{Canonical, Sink};
///
/// struct Count(usize);
/// impl Sink for Count {
///     fn put(&mut self, bytes: &[u8]) {
///         self.0 += bytes.len();
///     }
/// }
///
/// let mut count = Count(0);
/// <str as Canonical>::write("web", &mut count);
/// assert_eq!(count.0, r#""web""#.len());
/// ```
pub trait Sink {
    /// Takes the next bytes of the text. Pieces end anywhere, also inside a character.
    fn put(&mut self, bytes: &[u8]);

    /// Takes the first `len` of some bytes. Where there is room, moving all of them is cheaper than a few.
    #[doc(hidden)]
    #[inline]
    fn put_short(&mut self, bytes: [u8; 16], len: usize) {
        self.put(&bytes[..len]);
    }

    /// Takes a text in quotes, if it needs no escape and there is room for all of it. False: nothing was taken. Looking
    /// and copying in one pass is most of what makes short texts cheap.
    #[doc(hidden)]
    #[inline]
    fn put_text(&mut self, _: &[u8]) -> bool {
        false
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A value with one canonical text.
///
/// `A` stands for the attributes on the field that holds the value, as a type: [`none`], [`uppercase`],
/// [`decimal<2>`](decimal). A type implements the trait once for each set of attributes that means something on it, so
/// an attribute on the wrong type is a missing implementation, which the compiler reports at the field. Containers
/// (`Option`, `Vec`, `Box`, references, maps, newtypes) hand the attributes on to what they hold.
///
/// `#[derive(Canonical)]` implements it for structs and enums. An implementation by hand has to keep the promise the
/// hash rests on: equal texts exactly for equal values, and every text a complete JSON value.
///
/// ```
/// use idem_core::Canonical;
///
/// let mut text = Vec::new();
/// <str as Canonical>::write("caf\u{65}\u{301}", &mut text);
/// assert_eq!(text, "\"caf\u{e9}\"".as_bytes());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no canonical form here (attributes: `{A}`)",
    label = "cannot be part of a command hash like this",
    note = "a struct or enum of yours: add `#[derive(Canonical)]` to it; its fields carry their own attributes",
    note = "a type of `chrono`, `time`, `jiff`, `uuid` or `serde_json`: switch on the feature of that name",
    note = "`uppercase`, `lowercase`, `trim` and `verbatim` are for text, `decimal(..)` for `Decimal`, `timestamp(..)` for instants, `unordered` for lists, `digest` for bytes; all reach into `Option`, `Box` and maps, and all but `unordered` into lists",
    note = "attributes are named as the types they are: `decimal<2>` is `decimal(scale = 2)`, `timestamp<ms>` is `timestamp(precision = \"ms\")`, `none` is no attribute",
    note = "not part of what the client asks for (trace ids, clocks, secrets such as `SecretString`): `#[idem(exclude)]`"
)]
pub trait Canonical<A = none> {
    /// Whether the value's own text can be `null`, so that an `Option` around it needs brackets.
    #[doc(hidden)]
    const NULLABLE: bool = false;

    /// Writes the value as one JSON text.
    fn write<S: Sink + ?Sized>(&self, sink: &mut S);

    /// Describes the text of every value of the type, for the contract.
    fn shape(shapes: &mut Shapes) -> Shape;

    /// Whether a struct leaves the member out altogether.
    #[doc(hidden)]
    fn is_absent(&self) -> bool {
        false
    }

    /// Writes the value as a member that is there: absence has been told already, so `Some(x)` is `x`.
    #[doc(hidden)]
    fn write_member<S: Sink + ?Sized>(&self, sink: &mut S) {
        self.write(sink);
    }

    /// Writes values in a row. Bytes say "hex" here, which makes `Vec<u8>` a string and `Vec<u16>` a list.
    #[doc(hidden)]
    fn write_list<'a, S: Sink + ?Sized>(items: impl Iterator<Item = &'a Self>, sink: &mut S)
    where
        Self: 'a,
    {
        collection::write_array(items, sink);
    }

    /// Describes values in a row, as [`write_list`](Self::write_list) writes them.
    #[doc(hidden)]
    fn list_shape(shapes: &mut Shapes) -> Shape {
        Shape::List(Box::new(Self::shape(shapes)))
    }
}

#[doc(hidden)]
pub mod __private {
    pub use super::attribute::{
        decimal, digest, exact, float, half_even, half_up, lowercase, ms, none, s, timestamp, trim, unordered,
        uppercase, us, verbatim,
    };
    pub use super::collection::{MapKey, class_of_names};
    pub use super::composite::{
        Composite, Object, OneOf, Parts, Tuple, Variant, shape, shape_at, write, write_value_at,
    };
    pub use super::default::{AcceptsDefault, DecimalLiteral, Single, empty_list, numeric};
    pub use super::forward::mark;
    pub use super::shape::Wire;
    pub use super::{Canonical, Shape, Shapes, Sink};
    pub use core::iter::Iterator;
    pub use core::marker::Sized;
    pub use core::ops::FnOnce;
    pub use core::option::Option::{self, None, Some};
    pub use core::primitive::{bool, char, str, u32};
    pub use std::borrow::Cow;
}

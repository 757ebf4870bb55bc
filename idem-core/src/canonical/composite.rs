//! Derived types. One generated body names the parts of a type; writing and describing both run it, so that the two
//! cannot come apart and an unmet bound is reported once.

use super::default::AcceptsDefault;
use super::shape::{self, Member, Wire};
use super::{Canonical, Shape, Shapes, Sink};

/// What the derive implements for a type with parts.
pub trait Composite {
    /// [`Object`], [`Tuple`] or [`OneOf`].
    type Kind: Kind;

    /// Whether `#[serde(deny_unknown_fields)]` stands on the type.
    const DENIES_UNKNOWN: bool = false;

    /// Names each part, in the order they are written in.
    fn parts<P: Parts<Self>>(parts: &mut P);
}

/// Takes the parts of a type one by one.
///
/// `name` is the member's name ready to be written: `,"amount":`. `get` is `None` only for fields of another variant.
pub trait Parts<T: ?Sized> {
    /// A member of an object.
    fn member<A, F: Canonical<A> + ?Sized>(&mut self, name: &'static str, get: impl Fn(&T) -> Option<&F>);

    /// A member that is left out when it equals its default.
    fn member_or<A, F: AcceptsDefault<D, A> + ?Sized, D>(
        &mut self,
        name: &'static str,
        get: impl Fn(&T) -> Option<&F>,
        default: impl Fn() -> D,
    );

    /// A field that is not hashed.
    fn excluded(&mut self, name: &'static str);

    /// Whether fields that were part of the command up to `version` are wanted.
    fn until(&self, version: u32) -> bool;

    /// How the next member or variant comes in, if not as it stands.
    fn wire(&mut self, _: Wire) {}

    /// An element of a tuple.
    fn element<A, F: Canonical<A> + ?Sized>(&mut self, get: impl Fn(&T) -> Option<&F>);

    /// What a newtype variant holds.
    fn inner<A, F: Canonical<A> + ?Sized>(&mut self, get: impl Fn(&T) -> Option<&F>);

    /// A variant of an enum. `name` is `"card"`.
    fn variant(
        &mut self,
        name: &'static str,
        variant: Variant,
        is: impl Fn(&T) -> bool,
        fields: impl FnOnce(&mut Self),
    );
}

/// How a variant holds its fields.
#[derive(Clone, Copy, Debug)]
pub enum Variant {
    /// `Cash`
    Unit,
    /// `Card(String)`
    Newtype,
    /// `Split(u8, u8)`
    Tuple,
    /// `Bank { iban: String }`
    Object,
}

/// How the parts of a type make one text.
pub trait Kind {
    #[doc(hidden)]
    const OPEN: &'static [u8];
    #[doc(hidden)]
    const CLOSE: &'static [u8];
    #[doc(hidden)]
    fn shape(denies_unknown: bool, described: Description) -> Shape;
}

/// A struct with named members.
#[derive(Debug)]
pub struct Object;

/// A row of fields.
#[derive(Debug)]
pub struct Tuple;

/// An enum.
#[derive(Debug)]
pub struct OneOf;

impl Kind for Object {
    const OPEN: &'static [u8] = b"{";
    const CLOSE: &'static [u8] = b"}";

    fn shape(denies_unknown: bool, described: Description) -> Shape {
        Shape::Object { denies_unknown, members: described.members }
    }
}

impl Kind for Tuple {
    const OPEN: &'static [u8] = b"[";
    const CLOSE: &'static [u8] = b"]";

    fn shape(_: bool, described: Description) -> Shape {
        Shape::Tuple(described.elements)
    }
}

impl Kind for OneOf {
    const OPEN: &'static [u8] = b"";
    const CLOSE: &'static [u8] = b"";

    fn shape(denies_unknown: bool, described: Description) -> Shape {
        Shape::OneOf { denies_unknown, variants: described.variants }
    }
}

/// Writes a derived type.
pub fn write<T: Composite + ?Sized, S: Sink + ?Sized>(value: &T, sink: &mut S) {
    write_value_at(value, PRESENT, sink);
}

/// Writes a derived command with the fields that `version` had.
pub fn write_value_at<T: Composite + ?Sized, S: Sink + ?Sized>(value: &T, version: u32, sink: &mut S) {
    sink.put(T::Kind::OPEN);
    let mut writer = Writer { value, sink, version, is_first: true };
    T::parts(&mut writer);
    writer.sink.put(T::Kind::CLOSE);
}

/// Describes a derived type.
pub fn shape<T: Composite + ?Sized>(shapes: &mut Shapes) -> Shape {
    shapes.composite::<T, super::none>(|shapes| described::<T>(PRESENT, shapes))
}

/// Describes a derived command with the fields that `version` had. Inside itself it appears as it is today.
pub fn shape_at<T: Composite + ?Sized>(version: u32, shapes: &mut Shapes) -> Shape {
    enum ItsOwnVersion {}
    shapes.composite::<T, ItsOwnVersion>(|shapes| described::<T>(version, shapes))
}

fn described<T: Composite + ?Sized>(version: u32, shapes: &mut Shapes) -> Shape {
    let mut describer = Describer { shapes, version, described: Description::default() };
    T::parts(&mut describer);
    T::Kind::shape(T::DENIES_UNKNOWN, describer.described)
}

/// Later than any version: fields with an `until` are gone.
const PRESENT: u32 = u32::MAX;

struct Writer<'a, T: ?Sized, S: ?Sized> {
    value: &'a T,
    sink: &'a mut S,
    version: u32,
    /// Whether the next part is the first after the bracket, and has no comma before it.
    is_first: bool,
}

impl<T: ?Sized, S: Sink + ?Sized> Writer<'_, T, S> {
    // Where the name is known, its length is, and copying it is a few instructions.
    #[inline(always)]
    fn name(&mut self, name: &'static str) {
        if self.is_first {
            self.sink.put(&name.as_bytes()[1..]);
            self.is_first = false;
        } else {
            self.sink.put(name.as_bytes());
        }
    }
}

impl<T: ?Sized, S: Sink + ?Sized> Parts<T> for Writer<'_, T, S> {
    #[inline]
    fn member<A, F: Canonical<A> + ?Sized>(&mut self, name: &'static str, get: impl Fn(&T) -> Option<&F>) {
        if let Some(field) = get(self.value)
            && !field.is_absent()
        {
            self.name(name);
            field.write_member(self.sink);
        }
    }

    #[inline]
    fn member_or<A, F: AcceptsDefault<D, A> + ?Sized, D>(
        &mut self,
        name: &'static str,
        get: impl Fn(&T) -> Option<&F>,
        default: impl Fn() -> D,
    ) {
        if let Some(field) = get(self.value)
            && !field.is_absent()
            && !field.is_default(&default())
        {
            self.name(name);
            field.write_member(self.sink);
        }
    }

    fn excluded(&mut self, _: &'static str) {}

    fn until(&self, version: u32) -> bool {
        self.version <= version
    }

    #[inline]
    fn element<A, F: Canonical<A> + ?Sized>(&mut self, get: impl Fn(&T) -> Option<&F>) {
        if let Some(field) = get(self.value) {
            self.name(",");
            field.write(self.sink);
        }
    }

    #[inline]
    fn inner<A, F: Canonical<A> + ?Sized>(&mut self, get: impl Fn(&T) -> Option<&F>) {
        if let Some(field) = get(self.value) {
            field.write(self.sink);
        }
    }

    #[inline]
    fn variant(
        &mut self,
        name: &'static str,
        variant: Variant,
        is: impl Fn(&T) -> bool,
        fields: impl FnOnce(&mut Self),
    ) {
        if !is(self.value) {
            return;
        }
        let (open, close): (&[u8], &[u8]) = match variant {
            Variant::Unit => return self.sink.put(name.as_bytes()),
            Variant::Newtype => (b"", b""),
            Variant::Tuple => (b"[", b"]"),
            Variant::Object => (b"{", b"}"),
        };
        self.sink.put(b"{");
        self.sink.put(name.as_bytes());
        self.sink.put(b":");
        self.sink.put(open);
        self.is_first = true;
        fields(self);
        self.sink.put(close);
        self.sink.put(b"}");
    }
}

struct Describer<'a> {
    shapes: &'a mut Shapes,
    version: u32,
    described: Description,
}

/// The parts of a type, as they were named.
#[derive(Debug, Default)]
pub struct Description {
    members: Vec<Member>,
    elements: Vec<Shape>,
    inner: Option<Shape>,
    variants: Vec<shape::Variant>,
    /// Of the part that comes next.
    wire: Option<Wire>,
}

impl Describer<'_> {
    fn hashed<A, F: Canonical<A> + ?Sized>(&mut self, name: &str, default: Option<String>) {
        let wire = self.described.wire.take();
        match F::shape(self.shapes) {
            Shape::Nothing => {}
            shape => self.described.members.push(Member::Hashed { name: bare(name), wire, shape, default }),
        }
    }
}

impl<T: ?Sized> Parts<T> for Describer<'_> {
    fn member<A, F: Canonical<A> + ?Sized>(&mut self, name: &'static str, _: impl Fn(&T) -> Option<&F>) {
        self.hashed::<A, F>(name, None);
    }

    fn member_or<A, F: AcceptsDefault<D, A> + ?Sized, D>(
        &mut self,
        name: &'static str,
        _: impl Fn(&T) -> Option<&F>,
        default: impl Fn() -> D,
    ) {
        let mut text = Vec::new();
        F::write_default(&default(), &mut text as &mut dyn Sink);
        let text = String::from_utf8(text).expect("canonical text is put together from whole UTF-8 strings");
        self.hashed::<A, F>(name, Some(text));
    }

    fn excluded(&mut self, name: &'static str) {
        self.described.members.push(Member::Excluded { name: bare(name) });
    }

    fn until(&self, version: u32) -> bool {
        self.version <= version
    }

    fn wire(&mut self, wire: Wire) {
        self.described.wire = Some(wire);
    }

    fn element<A, F: Canonical<A> + ?Sized>(&mut self, _: impl Fn(&T) -> Option<&F>) {
        let shape = F::shape(self.shapes);
        self.described.elements.push(shape);
    }

    fn inner<A, F: Canonical<A> + ?Sized>(&mut self, _: impl Fn(&T) -> Option<&F>) {
        self.described.inner = Some(F::shape(self.shapes));
    }

    fn variant(
        &mut self,
        name: &'static str,
        variant: Variant,
        _: impl Fn(&T) -> bool,
        fields: impl FnOnce(&mut Self),
    ) {
        let wire = self.described.wire.take();
        let whole = std::mem::take(&mut self.described);
        fields(self);
        let held = std::mem::replace(&mut self.described, whole);
        let shape = match variant {
            Variant::Unit => None,
            Variant::Newtype => held.inner,
            Variant::Tuple => Some(Shape::Tuple(held.elements)),
            Variant::Object => Some(Shape::Object { denies_unknown: false, members: held.members }),
        };
        self.described.variants.push(shape::Variant { name: bare(name), wire, shape });
    }
}

/// The name inside `,"name":`, which the derive has escaped.
fn bare(name: &str) -> String {
    let quoted = name.trim_start_matches(',').trim_end_matches(':');
    serde_json::from_str(quoted).expect("the derive writes names as JSON strings")
}

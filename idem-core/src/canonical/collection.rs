//! Lists, tuples and maps.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::attribute::{Elementwise, unordered};
use super::compare::compare_text;
use super::text::{VERBATIM, write_text};
use super::{Canonical, Shape, Shapes, Sink};

/// A type whose values can be the keys of a map: distinct values have distinct texts.
///
/// Keys are written verbatim, without normalisation, so that no two entries can become one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map in a command",
    label = "has no text of its own to be a member's name",
    note = "keys are text, `char` or integers"
)]
pub trait MapKey {
    /// What the contract calls such a key: `text` or `integer`.
    const CLASS: &'static str;

    /// Lends the key's text.
    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R;
}

macro_rules! forward_key {
    ($($pointer:ty $(, $bound:ident)?;)*) => {$(
        impl<T: MapKey $(+ $bound)? + ?Sized> MapKey for $pointer {
            const CLASS: &'static str = T::CLASS;

            fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
                T::with_text(self, read)
            }
        }
    )*};
}

forward_key! {
    &T;
    Box<T>;
    Rc<T>;
    Arc<T>;
    Cow<'_, T>, ToOwned;
}

macro_rules! lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        impl<A: Elementwise, T: Canonical<A>, $($generics)*> Canonical<A> for $list {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                T::write_list(self.iter(), sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                T::list_shape(shapes)
            }
        }
    )*};
}

lists! {
    [] Vec<T>;
    [] [T];
    [const N: usize] [T; N];
}

// A list of bytes is hex only where it is one piece: a queue is a list of numbers.
impl<A: Elementwise, T: Canonical<A>> Canonical<A> for VecDeque<T> {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        write_array(self.iter(), sink);
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::List(Box::new(T::shape(shapes)))
    }
}

macro_rules! unordered {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        impl<A, T: Canonical<A>, $($generics)*> Canonical<unordered<A>> for $list {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_sorted(self.iter(), Doubles::Stay, sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                Shape::Unordered(Box::new(T::shape(shapes)))
            }
        }
    )*};
}

unordered! {
    [] Vec<T>;
    [] [T];
    [] VecDeque<T>;
    [const N: usize] [T; N];
}

impl<A: Elementwise, T: Canonical<A>> Canonical<A> for BTreeSet<T> {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        // A set of texts is in the order of its texts already; a set of numbers seldom is.
        let mut pairs = self.iter().zip(self.iter().skip(1));
        let in_order = pairs.all(|(a, b)| compare_text(|sink| a.write(sink), |sink| b.write(sink)).is_lt());
        if in_order { write_array(self.iter(), sink) } else { write_sorted(self.iter(), Doubles::Once, sink) }
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::Set(Box::new(T::shape(shapes)))
    }
}

impl<A: Elementwise, T: Canonical<A>, H> Canonical<A> for HashSet<T, H> {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        write_sorted(self.iter(), Doubles::Once, sink);
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::Set(Box::new(T::shape(shapes)))
    }
}

impl<A: Elementwise, K: MapKey, V: Canonical<A>> Canonical<A> for BTreeMap<K, V> {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        // The map's own order is the order of the texts for most keys: ASCII, or integers of one length.
        let in_order = self.keys().zip(self.keys().skip(1)).all(|(a, b)| compare_keys(a, b).is_lt());
        if in_order { write_entries(self.iter(), sink) } else { write_sorted_entries(self.iter(), sink) }
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::Map { key: K::CLASS.into(), value: Box::new(V::shape(shapes)) }
    }
}

impl<A: Elementwise, K: MapKey, V: Canonical<A>, H> Canonical<A> for HashMap<K, V, H> {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        write_sorted_entries(self.iter(), sink);
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::Map { key: K::CLASS.into(), value: Box::new(V::shape(shapes)) }
    }
}

/// Writes `[…]`.
pub(super) fn write_array<'a, A, T, S>(items: impl Iterator<Item = &'a T>, sink: &mut S)
where
    T: Canonical<A> + ?Sized + 'a,
    S: Sink + ?Sized,
{
    let mut open: &[u8] = b"[";
    for item in items {
        sink.put(open);
        item.write(sink);
        open = b",";
    }
    sink.put(if open == b"[" { b"[]" } else { b"]" });
}

#[derive(Clone, Copy, PartialEq)]
enum Doubles {
    Stay,
    Once,
}

/// Writes `[…]` in the order of the elements' texts. All texts share one allocation, and the order another.
fn write_sorted<'a, A, T, S>(items: impl Iterator<Item = &'a T>, doubles: Doubles, sink: &mut S)
where
    T: Canonical<A> + ?Sized + 'a,
    S: Sink + ?Sized,
{
    let mut texts = Vec::new();
    let mut spans = Vec::new();
    for item in items {
        let start = texts.len();
        item.write(&mut texts as &mut dyn Sink);
        spans.push(start..texts.len());
    }
    spans.sort_by(|a, b| texts[a.clone()].cmp(&texts[b.clone()]));
    if doubles == Doubles::Once {
        // Distinct elements of a set may still be one after normalisation.
        spans.dedup_by(|a, b| texts[a.clone()] == texts[b.clone()]);
    }
    let mut open: &[u8] = b"[";
    for span in spans {
        sink.put(open);
        sink.put(&texts[span]);
        open = b",";
    }
    sink.put(if open == b"[" { b"[]" } else { b"]" });
}

fn write_sorted_entries<'a, A, K, V, S>(entries: impl Iterator<Item = (&'a K, &'a V)>, sink: &mut S)
where
    K: MapKey + 'a,
    V: Canonical<A> + 'a,
    S: Sink + ?Sized,
{
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable_by(|(a, _), (b, _)| compare_keys(*a, *b));
    write_entries(entries.into_iter(), sink);
}

fn write_entries<'a, A, K, V, S>(entries: impl Iterator<Item = (&'a K, &'a V)>, sink: &mut S)
where
    K: MapKey + 'a,
    V: Canonical<A> + 'a,
    S: Sink + ?Sized,
{
    let mut open: &[u8] = b"{";
    for (key, value) in entries {
        sink.put(open);
        key.with_text(|key| write_text(key, VERBATIM, sink));
        sink.put(b":");
        value.write(sink);
        open = b",";
    }
    sink.put(if open == b"{" { b"{}" } else { b"}" });
}

fn compare_keys<K: MapKey>(a: &K, b: &K) -> Ordering {
    a.with_text(|a| b.with_text(|b| compare_utf16(a, b)))
}

/// Compares by UTF-16 code units without leaving UTF-8. The two orders agree but for U+E000 to U+FFFF, which UTF-16
/// puts after the characters beyond them.
pub(super) fn compare_utf16(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| if matches!(byte, 0xEE | 0xEF) { byte + 0x10 } else { byte };
    a.bytes().map(rank).cmp(b.bytes().map(rank))
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Canonical),*> Canonical for ($($name,)*) {
            #[allow(non_snake_case)]    // the elements are called as their types
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                let ($($name,)*) = self;
                let mut open: &[u8] = b"[";
                $(
                    sink.put(open);
                    $name.write(sink);
                    open = b",";
                )*
                sink.put(if open == b"[" { b"[]" } else { b"]" });
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                Shape::Tuple(vec![$($name::shape(shapes)),*])
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);

impl Canonical for () {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        sink.put(b"[]");
    }

    fn shape(_: &mut Shapes) -> Shape {
        Shape::Tuple(Vec::new())
    }
}

impl Canonical for bool {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        sink.put(if *self { b"true" } else { b"false" });
    }

    fn shape(_: &mut Shapes) -> Shape {
        Shape::leaf("bool")
    }
}

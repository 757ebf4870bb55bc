//! Lists, tuples and maps.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::attribute::{Elementwise, unordered};
use super::compare::compare_text;
use super::default::own_values;
use super::text::{VERBATIM, write_text};
use super::{Canonical, Shape, Shapes, Sink};

/// A type whose values can be the keys of a map: distinct values have distinct texts.
///
/// Text is written verbatim, without normalisation, so that no two entries can become one. `#[derive(Canonical)]`
/// implements the trait for newtypes of a key (without rules that would change it) and for enums of unit variants:
///
/// ```
/// use std::collections::BTreeMap;
///
/// use idem_core::{Canonical, IdempotentCommand};
///
/// #[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
/// #[idem(rename_all = "snake_case")]
/// enum Account {
///     Savings,
///     Current,
/// }
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "split", version = 1)]
/// struct Split {
///     shares: BTreeMap<Account, u32>,
/// }
///
/// let split = Split { shares: [(Account::Savings, 30), (Account::Current, 70)].into() };
/// assert_eq!(split.preimage(), r#"["idem/1","split",1,{"shares":{"current":"70","savings":"30"}}]"#);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map in a command",
    label = "has no text of its own to be a member's name",
    note = "keys are text, `char`, integers, decimals, ids, addresses, instants, dates, times, durations, `[u8; N]`, newtypes of these, and enums of unit variants"
)]
pub trait MapKey {
    /// What the contract calls such a key: `text`, `integer`, `name(card,cash)`.
    fn class() -> Cow<'static, str>;

    /// Lends the key's text.
    fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R;
}

macro_rules! forward_key {
    ($($pointer:ty $(, $bound:ident)?;)*) => {$(
        impl<T: MapKey $(+ $bound)? + ?Sized> MapKey for $pointer {
            fn class() -> Cow<'static, str> {
                T::class()
            }

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

macro_rules! maps {
    ($([$($generics:tt)*] $attributes:ty;)*) => {$(
        impl<$($generics)*, K: MapKey, V: Canonical<$attributes>> Canonical<$attributes> for BTreeMap<K, V> {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                write_map(|| self.iter(), sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                Shape::Map { key: K::class(), value: Box::new(V::shape(shapes)) }
            }
        }

        impl<$($generics)*, K: MapKey, V: Canonical<$attributes>, H> Canonical<$attributes> for HashMap<K, V, H> {
            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                match self.len() <= FEW {
                    true => write_few_entries(self.iter(), sink),
                    false => write_sorted_entries(self.iter(), sink),
                }
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                <BTreeMap<K, V> as Canonical<$attributes>>::shape(shapes)
            }
        }
    )*};
}

maps! {
    [A: Elementwise] A;
    [A] unordered<A>;
}

/// The class of a key that is one of these names.
pub fn class_of_names(names: &[&str]) -> Cow<'static, str> {
    let word = |name: &&str| match !name.is_empty() && name.chars().all(is_of_word) {
        true => (*name).to_owned(),
        false => quoted(name),
    };
    format!("name({})", names.iter().map(word).collect::<Vec<_>>().join(",")).into()
}

/// A JSON string in which all but the characters of words is escaped, so that it can stand among anything.
pub(crate) fn quoted(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| match char::from_u32(unit.into()) {
        Some(c) if is_of_word(c) => c.to_string(),
        _ => format!("\\u{unit:04x}"),
    });
    format!("\"{}\"", String::from_iter(units))
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
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

/// Writes entries that are often in order: a sorted map's own order is the order of the texts for most keys, ASCII or
/// integers of one length.
pub(super) fn write_map<'a, A, K, V, S, I>(entries: impl Fn() -> I, sink: &mut S)
where
    K: MapKey + 'a,
    V: Canonical<A> + 'a,
    S: Sink + ?Sized,
    I: ExactSizeIterator<Item = (&'a K, &'a V)>,
{
    let mut keys = entries().map(|(key, _)| key);
    let mut before = keys.next();
    match keys.all(|key| before.replace(key).is_some_and(|before| compare_keys(before, key).is_lt())) {
        true => write_entries(entries(), sink),
        false if entries().len() <= FEW => write_few_entries(entries(), sink),
        false => write_sorted_entries(entries(), sink),
    }
}

/// Sorts a few entries on the stack, as they come: most maps in commands are small.
fn write_few_entries<'a, A, K, V, S>(entries: impl Iterator<Item = (&'a K, &'a V)>, sink: &mut S)
where
    K: MapKey + 'a,
    V: Canonical<A> + 'a,
    S: Sink + ?Sized,
{
    let mut few = [None; FEW];
    let mut len = 0;
    for (slot, entry) in entries.enumerate() {
        few[slot] = Some(entry);
        len = slot + 1;
        let mut at = slot;
        while let Some([Some(before), Some(this)]) = few.get(at.wrapping_sub(1)..=at)
            && compare_keys(before.0, this.0).is_gt()
        {
            few.swap(at - 1, at);
            at -= 1;
        }
    }
    write_entries(few[..len].iter().flatten().copied(), sink);
}

/// How many entries of a map are sorted without an allocation.
const FEW: usize = 8;

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
    let mut pairs = a.bytes().zip(b.bytes());
    pairs.find(|(a, b)| a != b).map_or_else(|| a.len().cmp(&b.len()), |(a, b)| rank(a).cmp(&rank(b)))
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

        own_values!([$($name),*] ($($name,)*) as super::none;);
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

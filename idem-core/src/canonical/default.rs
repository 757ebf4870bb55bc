//! `#[idem(default = …)]`: which values may stand for an absent member, and when a member equals its default.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::attribute::{Elementwise, unordered};
use super::compare::same_text;
use super::{Canonical, Sink};

/// `D`, as written after `default =`, may stand for an absent value of this type.
#[diagnostic::on_unimplemented(
    message = "`{D}` cannot be the default of `{Self}` (attributes: `{A}`)",
    label = "does not take this default",
    note = "text takes a string literal, a number or `bool` its own literal, what is empty `[]`, any other type a value of its own",
    note = "defaults are named as the types they are: `numeric<_>` is a number such as `default = 1`, `empty_list` is `default = []`, `&str` a string",
    note = "a `Decimal` takes a default together with `decimal(scale = N)`: `#[idem(decimal(scale = 2), default = \"0.00\")]`"
)]
pub trait AcceptsDefault<D: ?Sized, A = super::none>: Canonical<A> {
    /// Writes the default as the member it stands for.
    fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S);

    /// Whether the value, which is not absent, is written as the default would be.
    fn is_default(&self, default: &D) -> bool {
        same_text(|sink| self.write_member(sink), |sink| Self::write_default(default, sink))
    }
}

/// A type with one way to be absent at most, so that "absent" and a default can be the same thing.
#[diagnostic::on_unimplemented(
    message = "a default on `Option<{Self}>` would have two meanings",
    label = "`None` and `Some(None)` cannot both be the default",
    note = "a nested `Option` tells absent from null; with a default the two are one, so use a plain `Option`"
)]
pub trait Single<A = super::none> {}

/// `default = []`: the empty list, set or map. Named as a compile error is to read.
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct empty_list;

/// `default = 5`: a number literal, of the type that the field asks for. Named as a compile error is to read.
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct numeric<T>(pub T);

/// A decimal default, read from the attribute when the macro expands.
#[derive(Debug)]
pub struct DecimalLiteral {
    /// Whether the number is below zero.
    pub negative: bool,
    /// The digits without the point.
    pub mantissa: u128,
    /// How many of them stand behind the point.
    pub scale: u32,
}

/// Types whose default is a value of their own.
macro_rules! own_values {
    ($([$($generics:tt)*] $ty:ty as $attributes:ty;)*) => {$(
        impl<$($generics)*> $crate::canonical::default::AcceptsDefault<$ty, $attributes> for $ty
        where
            $ty: $crate::canonical::Canonical<$attributes>,
        {
            fn write_default<S: $crate::canonical::Sink + ?Sized>(default: &$ty, sink: &mut S) {
                <$ty as $crate::canonical::Canonical<$attributes>>::write(default, sink);
            }
        }

        impl<$($generics)*> $crate::canonical::default::Single<$attributes> for $ty {}
    )*};
}

pub(super) use own_values;

/// Types whose default is a number as well.
macro_rules! numbers {
    ($($number:ty as $attributes:ty;)*) => {$(
        impl $crate::canonical::default::AcceptsDefault<$crate::canonical::default::numeric<$number>, $attributes>
            for $number
        {
            fn write_default<S: $crate::canonical::Sink + ?Sized>(
                default: &$crate::canonical::default::numeric<$number>,
                sink: &mut S,
            ) {
                <$number as $crate::canonical::Canonical<$attributes>>::write(&default.0, sink);
            }
        }
    )*};
}

pub(super) use numbers;

own_values! {
    [] bool as super::none;
    [T, A: Elementwise, const N: usize] [T; N] as A;
    [T, A, const N: usize] [T; N] as unordered<A>;
}

impl<A, D, T: AcceptsDefault<D, A> + Single<A>> AcceptsDefault<D, A> for Option<T> {
    fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S) {
        T::write_default(default, sink);
    }

    #[inline]
    fn is_default(&self, default: &D) -> bool {
        self.as_ref().is_none_or(|value| value.is_default(default))
    }
}

macro_rules! lists {
    ($([$($generics:tt)*] $list:ty as $attributes:ty;)*) => {$(
        impl<$($generics)*> AcceptsDefault<empty_list, $attributes> for $list
        where
            $list: Canonical<$attributes> + Default,
        {
            fn write_default<S: Sink + ?Sized>(_: &empty_list, sink: &mut S) {
                <$list as Canonical<$attributes>>::write(&<$list>::default(), sink);
            }
        }

        impl<$($generics)*> Single<$attributes> for $list {}
    )*};
}

lists! {
    [T, A: Elementwise] Vec<T> as A;
    [T, A] Vec<T> as unordered<A>;
    [T, A: Elementwise] VecDeque<T> as A;
    [T, A] VecDeque<T> as unordered<A>;
    [T, A: Elementwise] BTreeSet<T> as A;
    [T, A: Elementwise, H] HashSet<T, H> as A;
    [K, V, A: Elementwise] BTreeMap<K, V> as A;
    [K, V, A] BTreeMap<K, V> as unordered<A>;
    [K, V, A: Elementwise, H] HashMap<K, V, H> as A;
    [K, V, A, H] HashMap<K, V, H> as unordered<A>;
}

macro_rules! slices {
    ($([$($generics:tt)*] $attributes:ty;)*) => {$(
        impl<T, $($generics)*> AcceptsDefault<empty_list, $attributes> for [T]
        where
            [T]: Canonical<$attributes>,
        {
            fn write_default<S: Sink + ?Sized>(_: &empty_list, sink: &mut S) {
                <[T] as Canonical<$attributes>>::write(&[], sink);
            }
        }

        impl<T, $($generics)*> Single<$attributes> for [T] {}
    )*};
}

slices! {
    [A: Elementwise] A;
    [A] unordered<A>;
}

macro_rules! forward {
    ($($pointer:ty $(, $bound:ident)?;)*) => {$(
        impl<A, D, T: AcceptsDefault<D, A> $(+ $bound)? + ?Sized> AcceptsDefault<D, A> for $pointer {
            fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S) {
                T::write_default(default, sink);
            }

            #[inline]
            fn is_default(&self, default: &D) -> bool {
                T::is_default(self, default)
            }
        }

        impl<A, T: Single<A> $(+ $bound)? + ?Sized> Single<A> for $pointer {}
    )*};
}

forward! {
    &T;
    Box<T>;
    Rc<T>;
    Arc<T>;
    Cow<'_, T>, ToOwned;
}

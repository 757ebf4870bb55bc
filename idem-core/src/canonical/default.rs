//! `#[idem(default = …)]`: which values may stand for an absent member, and when a member equals its default.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::attribute::Elementwise;
use super::{Canonical, Sink};

/// `D`, as written after `default =`, may stand for an absent value of this type.
#[diagnostic::on_unimplemented(
    message = "`{D}` cannot be the default of `{Self}` (attributes: `{A}`)",
    label = "does not take this default",
    note = "text takes a string literal, an integer or `bool` its own literal, a list `[]`, a type of yours its own value",
    note = "a `Decimal` takes a default together with `decimal(scale = N)`: `#[idem(decimal(scale = 2), default = \"0.00\")]`"
)]
pub trait AcceptsDefault<D, A = super::none>: Canonical<A> {
    /// Writes the default as the member it stands for.
    fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S);
}

/// A type with one way to be absent at most, so that "absent" and a default can be the same thing.
#[diagnostic::on_unimplemented(
    message = "a default on `Option<{Self}>` would have two meanings",
    label = "`None` and `Some(None)` cannot both be the default",
    note = "a nested `Option` tells absent from null; with a default the two are one, so use a plain `Option`"
)]
pub trait Single<A = super::none> {}

/// `default = []`.
#[derive(Debug)]
pub struct EmptyList;

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

/// Whether two canonical texts are equal, without holding either: a window of both at a time.
///
/// One pass over each for texts up to the window. A longer pair costs a pass per window, but only when both have one
/// length, which a value that is not the default rarely shares with it.
pub(super) fn same_text(left: impl Fn(&mut dyn Sink), right: impl Fn(&mut dyn Sink)) -> bool {
    let mut skip = 0;
    loop {
        let [mut a, mut b] = [Window::after(skip), Window::after(skip)];
        left(&mut a);
        right(&mut b);
        if a.total != b.total || a.kept() != b.kept() {
            return false;
        }
        skip += WINDOW;
        if skip >= a.total {
            return true;
        }
    }
}

/// Keeps the bytes `skip..skip + WINDOW` of what is put.
struct Window {
    skip: usize,
    total: usize,
    held: [u8; WINDOW],
}

impl Window {
    fn after(skip: usize) -> Self {
        Self { skip, total: 0, held: [0; WINDOW] }
    }

    fn kept(&self) -> &[u8] {
        &self.held[..self.total.saturating_sub(self.skip).min(WINDOW)]
    }
}

impl Sink for Window {
    fn put(&mut self, bytes: &[u8]) {
        let before = self.skip.saturating_sub(self.total).min(bytes.len());
        let at = self.total.saturating_sub(self.skip).min(WINDOW);
        let fitting = &bytes[before..];
        let fitting = &fitting[..fitting.len().min(WINDOW - at)];
        self.held[at..at + fitting.len()].copy_from_slice(fitting);
        self.total += bytes.len();
    }
}

const WINDOW: usize = 64;

impl AcceptsDefault<bool> for bool {
    fn write_default<S: Sink + ?Sized>(default: &bool, sink: &mut S) {
        default.write(sink);
    }
}

impl Single for bool {}

impl<A, D, T: AcceptsDefault<D, A> + Single<A>> AcceptsDefault<D, A> for Option<T> {
    fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S) {
        T::write_default(default, sink);
    }
}

impl<A: Elementwise, T: Canonical<A>> AcceptsDefault<EmptyList, A> for Vec<T> {
    fn write_default<S: Sink + ?Sized>(_: &EmptyList, sink: &mut S) {
        T::write_list([].iter(), sink);
    }
}

impl<A: Elementwise, T: Canonical<A>> Single<A> for Vec<T> {}

macro_rules! forward {
    ($($pointer:ty $(, $bound:ident)?;)*) => {$(
        impl<A, D, T: AcceptsDefault<D, A> $(+ $bound)? + ?Sized> AcceptsDefault<D, A> for $pointer {
            fn write_default<S: Sink + ?Sized>(default: &D, sink: &mut S) {
                T::write_default(default, sink);
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

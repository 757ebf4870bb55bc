//! Types that are what they hold: pointers and `Option`. Every method is handed on, the one that says "absent" too.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::{Canonical, Shape, Shapes, Sink};

macro_rules! forward {
    ($($(#[$lifetime:tt])? $pointer:ty $(, $bound:ident)?;)*) => {$(
        impl<$($lifetime,)? A, T: Canonical<A> $(+ $bound)? + ?Sized> Canonical<A> for $pointer {
            const NULLABLE: bool = T::NULLABLE;

            fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
                T::write(self, sink);
            }

            fn shape(shapes: &mut Shapes) -> Shape {
                T::shape(shapes)
            }

            fn is_absent(&self) -> bool {
                T::is_absent(self)
            }

            fn write_member<S: Sink + ?Sized>(&self, sink: &mut S) {
                T::write_member(self, sink);
            }

            fn write_list<'list, S: Sink + ?Sized>(items: impl Iterator<Item = &'list Self>, sink: &mut S)
            where
                Self: 'list,
            {
                T::write_list(items.map(|item| &**item), sink);
            }

            fn list_shape(shapes: &mut Shapes) -> Shape {
                T::list_shape(shapes)
            }
        }
    )*};
}

forward! {
    &T;
    Box<T>;
    Rc<T>;
    Arc<T>;
    Cow<'_, T>, ToOwned;
}

impl<A, T: Canonical<A>> Canonical<A> for Option<T> {
    const NULLABLE: bool = true;

    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        match self {
            None => sink.put(b"null"),
            Some(value) if T::NULLABLE => {
                sink.put(b"[");
                value.write(sink);
                sink.put(b"]");
            }
            Some(value) => value.write(sink),
        }
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        Shape::Optional(Box::new(T::shape(shapes)))
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn write_member<S: Sink + ?Sized>(&self, sink: &mut S) {
        match self {
            None => sink.put(b"null"),
            Some(value) => value.write(sink),
        }
    }
}

/// What a row may leave out for its name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the standard library's `PhantomData`, whose name it has",
    label = "would be left out of the hash",
    note = "the fields of a row have no names, and what is called `PhantomData` is taken to be it; give the type another name, or the field one"
)]
pub trait Mark {}

impl<T: ?Sized> Mark for PhantomData<T> {}

/// Compiles for `PhantomData` alone.
pub fn mark<T: Mark + ?Sized>() {}

/// Carries no value: a member of this type is left out.
impl<A, T: ?Sized> Canonical<A> for PhantomData<T> {
    const NULLABLE: bool = true;

    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        sink.put(b"null");
    }

    fn shape(_: &mut Shapes) -> Shape {
        Shape::Nothing
    }

    fn is_absent(&self) -> bool {
        true
    }
}

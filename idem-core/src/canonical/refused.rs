//! Types that are refused on purpose. Each implements [`Canonical`] under a condition that never holds, so that the
//! compiler names that condition, and what to do instead, rather than a missing implementation. The condition is on the
//! attributes: one on the type itself would be reported as the missing implementation after all.

use super::{Canonical, Shape, Shapes, Sink, decimal, none};

/// What a float is not.
#[diagnostic::on_unimplemented(
    message = "`{T}` is not hashed as it is: a float holds no exact amount",
    label = "a float",
    note = "an amount: make it a `Decimal` with `#[idem(decimal(scale = 2))]`, or an integer of the smallest unit",
    note = "no amount, such as a coordinate: `#[idem(float)]`, with the feature `float` of idem-core"
)]
pub trait Exact<T> {}

/// What a float has lost before it could be one.
#[diagnostic::on_unimplemented(
    message = "`decimal(..)` does not fit `{T}`: the exact amount is lost before it could be written",
    label = "a float",
    note = "make the field a `Decimal`, and read it from a string or an integer: see `idem_core::exact`"
)]
pub trait ExactDecimal<T> {}

/// What is only there with the feature.
#[cfg(not(feature = "float"))]
#[diagnostic::on_unimplemented(
    message = "`#[idem(float)]` on `{T}` needs the feature `float` of idem-core",
    label = "a float",
    note = "in Cargo.toml: `idem-core = {{ version = \"..\", features = [\"float\"] }}`"
)]
pub trait FloatFeature<T> {}

/// What a reading of this process's own clock is not.
#[diagnostic::on_unimplemented(
    message = "`{T}` means nothing outside this process, so it is no part of what a client asks for",
    label = "a reading of this process's clock",
    note = "a time that the client sends: `SystemTime`, or a type of `chrono`, `time` or `jiff` with the feature of its name",
    note = "a time that is taken here: `#[idem(exclude)]`"
)]
pub trait SentByClient<T> {}

macro_rules! refused {
    ($([$($generics:tt)*] $attributes:ty, $ty:ty: $condition:ident;)*) => {$(
        impl<$($generics)*> Canonical<$attributes> for $ty
        where
            for<'never> $attributes: $condition<$ty>,
        {
            fn write<S: Sink + ?Sized>(&self, _: &mut S) {}

            fn shape(_: &mut Shapes) -> Shape {
                Shape::Nothing
            }
        }
    )*};
}

refused! {
    [] none, f32: Exact;
    [] none, f64: Exact;
    [const SCALE: u32, R] decimal<SCALE, R>, f32: ExactDecimal;
    [const SCALE: u32, R] decimal<SCALE, R>, f64: ExactDecimal;
    [] none, std::time::Instant: SentByClient;
}

#[cfg(not(feature = "float"))]
refused! {
    [] super::float, f32: FloatFeature;
    [] super::float, f64: FloatFeature;
}

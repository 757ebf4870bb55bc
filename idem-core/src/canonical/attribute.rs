//! The attributes of a field as types, spelled as the user spells them, so that a compile error reads like the source.
#![allow(non_camel_case_types)]

/// No attributes.
#[derive(Debug)]
pub enum none {}

/// `#[idem(uppercase)]`: ASCII letters in upper case, for codes such as currencies.
///
/// Other letters stay: `str::to_uppercase` moves with the toolchain's tables, turns `ß` into `SS` and merges `ı` with
/// `i`.
#[derive(Debug)]
pub enum uppercase {}

/// `#[idem(lowercase)]`: ASCII letters in lower case. Other letters stay, as with [`uppercase`].
#[derive(Debug)]
pub enum lowercase {}

/// `#[idem(trim)]`: without ASCII white space at both ends. Comes before a case: `(trim, uppercase)`.
#[derive(Debug)]
pub enum trim {}

/// `#[idem(verbatim)]`: as it was sent, without normalisation. For opaque tokens and ids.
#[derive(Debug)]
pub enum verbatim {}

/// `#[idem(decimal(scale = SCALE))]`: at least `SCALE` decimal places. Never rounded, unless `R` says how:
/// [`half_even`] or [`half_up`], from `round = "…"`.
#[derive(Debug)]
pub struct decimal<const SCALE: u32, R = exact>(std::marker::PhantomData<R>);

/// No rounding.
#[derive(Debug)]
pub enum exact {}

/// `round = "half_even"`: to the nearest, halves to the even neighbour.
#[derive(Debug)]
pub enum half_even {}

/// `round = "half_up"`: to the nearest, halves away from zero.
#[derive(Debug)]
pub enum half_up {}

/// `#[idem(timestamp(precision = "…"))]`: an instant cut to whole [`s`], [`ms`] or [`us`], towards the past.
#[derive(Debug)]
pub struct timestamp<P>(std::marker::PhantomData<P>);

/// Seconds.
#[derive(Debug)]
pub enum s {}

/// Milliseconds.
#[derive(Debug)]
pub enum ms {}

/// Microseconds.
#[derive(Debug)]
pub enum us {}

/// The precision of an instant.
pub(super) trait Precision {
    /// The nanoseconds in one step.
    const STEP: u32;
    /// The rule in the contract's text.
    const RULE: &'static str;
}

impl Precision for s {
    const STEP: u32 = 1_000_000_000;
    const RULE: &'static str = r#"precision = "s""#;
}

impl Precision for ms {
    const STEP: u32 = 1_000_000;
    const RULE: &'static str = r#"precision = "ms""#;
}

impl Precision for us {
    const STEP: u32 = 1_000;
    const RULE: &'static str = r#"precision = "us""#;
}

/// `#[idem(float)]`: a float, as ECMAScript writes it.
#[derive(Debug)]
pub enum float {}

/// `#[idem(unordered)]`: a list whose order does not count. Sorted by the elements' text; doubles stay. A list in the
/// list keeps its order, and lists that are values of a map lose theirs.
#[derive(Debug)]
pub struct unordered<A = none>(std::marker::PhantomData<A>);

/// `#[idem(digest)]`: bytes as the SHA-256 of them, for large blobs.
#[derive(Debug)]
pub enum digest {}

/// Attributes that lists and sets hand on to each element. `unordered`, which is a list's own, does not implement it.
///
/// A rule of your own, for `#[idem(with = "path")]`, is a type with this mark and an implementation of
/// [`Canonical`](super::Canonical) under it for each type that it is for. The type may be another crate's, and the rule
/// reaches it through all that rules reach through. What the trait asks of an implementation holds here too: equal
/// texts exactly for values that are one request. The shape names the rule in the contract.
///
/// ```
/// use idem_core::canonical::{Elementwise, Shape, Shapes};
/// use idem_core::{Canonical, IdempotentCommand, Sink};
///
/// mod bank {
///     pub struct Money {
///         pub cents: i64,
///     }
/// }
///
/// enum Cents {}
///
/// impl Elementwise for Cents {}
///
/// impl Canonical<Cents> for bank::Money {
///     fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
///         self.cents.write(sink);
///     }
///
///     fn shape(_: &mut Shapes) -> Shape {
///         Shape::leaf("integer").with_rule("cents")
///     }
/// }
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "pay_out", version = 1)]
/// struct PayOut {
///     #[idem(with = "Cents")]
///     amounts: Option<Vec<bank::Money>>,
/// }
///
/// let pay_out = PayOut { amounts: Some(vec![bank::Money { cents: 1050 }]) };
/// assert_eq!(pay_out.preimage(), r#"["idem/1","pay_out",1,{"amounts":["1050"]}]"#);
/// assert!(PayOut::contract().to_string().contains("amounts?: list of integer(cents)"));
/// ```
pub trait Elementwise {}

impl Elementwise for none {}
impl Elementwise for uppercase {}
impl Elementwise for lowercase {}
impl Elementwise for trim {}
impl Elementwise for (trim, uppercase) {}
impl Elementwise for (trim, lowercase) {}
impl Elementwise for verbatim {}
impl Elementwise for digest {}
impl<const SCALE: u32, R> Elementwise for decimal<SCALE, R> {}
impl Elementwise for float {}
impl<P> Elementwise for timestamp<P> {}

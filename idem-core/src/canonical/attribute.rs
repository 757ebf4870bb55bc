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

/// `#[idem(decimal(scale = SCALE))]`: at least `SCALE` decimal places, never rounded.
#[derive(Debug)]
pub enum decimal<const SCALE: u32> {}

/// Attributes that containers hand on to each element. Attributes of the container itself do not implement it.
pub trait Elementwise {}

impl Elementwise for none {}
impl Elementwise for uppercase {}
impl Elementwise for lowercase {}
impl Elementwise for trim {}
impl Elementwise for (trim, uppercase) {}
impl Elementwise for (trim, lowercase) {}
impl Elementwise for verbatim {}
impl<const SCALE: u32> Elementwise for decimal<SCALE> {}

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

/// `#[idem(decimal(scale = SCALE))]`: at least `SCALE` decimal places, never rounded.
#[derive(Debug)]
pub enum decimal<const SCALE: u32> {}

/// Attributes that containers hand on to each element. Attributes of the container itself do not implement it.
pub trait Elementwise {}

impl Elementwise for none {}
impl Elementwise for uppercase {}
impl<const SCALE: u32> Elementwise for decimal<SCALE> {}

//! Every mistake of a type, reported in one go.

use std::cell::RefCell;
use std::fmt::Display;
use std::thread;

use proc_macro2::Span;

/// Collects errors. Has to be asked for them: dropping it unasked is a bug of the macro.
pub(crate) struct Ctxt {
    errors: RefCell<Option<Vec<syn::Error>>>,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Self { errors: RefCell::new(Some(Vec::new())) }
    }

    pub(crate) fn error(&self, span: Span, message: impl Display) {
        self.syn(syn::Error::new(span, message));
    }

    pub(crate) fn syn(&self, error: syn::Error) {
        if let Some(errors) = &mut *self.errors.borrow_mut() {
            errors.push(error);
        }
    }

    /// How many mistakes were found until now.
    pub(crate) fn count(&self) -> usize {
        self.errors.borrow().as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn check(self) -> Result<(), Vec<syn::Error>> {
        let errors = self.errors.borrow_mut().take().unwrap_or_default();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        if !thread::panicking() && self.errors.borrow().is_some() {
            panic!("forgot to check for errors");
        }
    }
}

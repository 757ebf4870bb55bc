//! Comparing canonical texts without holding them.

use std::cmp::Ordering;

use super::Sink;

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

/// Compares two canonical texts byte by byte, the same way.
pub(super) fn compare_text(left: impl Fn(&mut dyn Sink), right: impl Fn(&mut dyn Sink)) -> Ordering {
    let mut skip = 0;
    loop {
        let [mut a, mut b] = [Window::after(skip), Window::after(skip)];
        left(&mut a);
        right(&mut b);
        skip += WINDOW;
        match a.kept().cmp(b.kept()) {
            Ordering::Equal if skip < a.total.max(b.total) => {}
            order => return order,
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

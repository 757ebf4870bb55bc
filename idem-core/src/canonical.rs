//! Canonical form 1.
/// Where canonical text goes, piece by piece.
pub trait Sink {
    /// Takes the next bytes of the text.
    fn put(&mut self, bytes: &[u8]);
}

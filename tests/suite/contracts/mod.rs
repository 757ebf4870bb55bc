//! The contract's text and its snapshot.

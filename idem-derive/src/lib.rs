//! The derive macros of `idem-core`, which documents and re-exports them.

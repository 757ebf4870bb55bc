//! What the compiler says to mistakes: each case is a few lines, in a folder for its rule, named by its fault.
//!
//! The expected texts are those of the pinned toolchain. After a change: `TRYBUILD=overwrite cargo test -p idem-ui`,
//! then read the difference as a user would.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("*/*.rs");
}

//! Nothing: the package is its test.

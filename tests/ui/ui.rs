//! What the compiler says to mistakes: each case is a few lines, in a folder for its rule, named by its fault.
//!
//! The expected texts are those of the pinned toolchain. After a change: `TRYBUILD=overwrite cargo test -p idem-ui`,
//! then read the difference as a user would. Other toolchains word their part differently, so there each case only has
//! to be refused.
#![allow(clippy::unwrap_used, reason = "a test's panic is its verdict")]

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[test]
fn mistakes_are_explained_where_they_are() {
    if is_pinned() {
        return trybuild::TestCases::new().compile_fail("*/*.rs");
    }
    let cases = without_texts(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let verdict = catch_unwind(|| trybuild::TestCases::new().compile_fail(cases.join("*/*.rs")));
    // A case without a text that is refused has its text written down, which counts as a failure; one that compiles
    // is a failure of another name.
    let _ = fs::remove_dir_all(Path::new(env!("CARGO_MANIFEST_DIR")).join("wip"));
    let message = verdict.expect_err("each case is refused");
    let message = message.downcast_ref::<String>().map_or("", String::as_str);
    assert!(message.starts_with("successfully created new stderr files"), "{message}");
}

/// Whether the toolchain that compiles the cases is the one that the expected texts are of. `IDEM_UI=without-texts` says
/// that it is not, so that what is done with another one can be tried with this one.
fn is_pinned() -> bool {
    if env::var_os("IDEM_UI").is_some_and(|asked| asked == "without-texts") {
        return false;
    }
    let pinned = include_str!("../../rust-toolchain.toml").lines().find_map(|line| line.strip_prefix("channel = "));
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = String::from_utf8(Command::new(rustc).arg("--version").output().unwrap().stdout).unwrap();
    version.split_whitespace().nth(1) == pinned.map(|channel| channel.trim_matches('"'))
}

/// A copy of the cases without what is expected of them.
fn without_texts(folder: &Path) -> PathBuf {
    let copy = folder.join("cases");
    let _ = fs::remove_dir_all(&copy);
    for rule in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().map(|entry| entry.unwrap().path()) {
        if !rule.is_dir() {
            continue;
        }
        let to = copy.join(rule.file_name().unwrap());
        fs::create_dir_all(&to).unwrap();
        for case in fs::read_dir(rule).unwrap().map(|entry| entry.unwrap().path()) {
            if case.extension().is_some_and(|ending| ending == "rs") {
                fs::copy(&case, to.join(case.file_name().unwrap())).unwrap();
            }
        }
    }
    copy
}

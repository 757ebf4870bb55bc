//! Everything that insta can be told, by its environment and by its tool.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::scratch::Scratch;

/// What every change has to stand.
pub(crate) const WORST: &[&[(&str, &str)]] =
    &[&[("INSTA_FORCE_PASS", "1"), ("CI", "1")], &[("INSTA_UPDATE", "always")]];

/// Everything.
pub(crate) const ALL: &[&[(&str, &str)]] = &[
    &[],
    &[("CI", "1")],
    &[("INSTA_FORCE_PASS", "1")],
    &[("INSTA_FORCE_PASS", "1"), ("CI", "1")],
    &[("INSTA_UPDATE", "auto")],
    &[("INSTA_UPDATE", "always")],
    &[("INSTA_UPDATE", "always"), ("INSTA_FORCE_PASS", "1"), ("CI", "1")],
    &[("INSTA_UPDATE", "no")],
    &[("INSTA_UPDATE", "no"), ("INSTA_FORCE_PASS", "1")],
    &[("INSTA_UPDATE", "new")],
    &[("INSTA_UPDATE", "new"), ("INSTA_FORCE_PASS", "1")],
    &[("INSTA_UPDATE", "unseen")],
    &[("INSTA_UPDATE", "unseen"), ("INSTA_FORCE_PASS", "1")],
    &[("INSTA_UPDATE", "force")],
    &[("INSTA_UPDATE", "force"), ("INSTA_FORCE_PASS", "1")],
    &[("INSTA_FORCE_UPDATE", "1"), ("INSTA_FORCE_PASS", "1")],
    &[("INSTA_OUTPUT", "none"), ("INSTA_FORCE_PASS", "1")],
];

/// A change that moves hashes fails in each mood, and again after whatever that mood has left in the folder.
pub(crate) fn assert_none_lets_it_through(moods: &[&[(&str, &str)]], scratch: &Scratch, name: &str) {
    for mood in moods {
        scratch.checkout();
        // Started from anywhere, it is the same file.
        for from in places(scratch) {
            let passed = scratch.run_on(mood, &from).is_ok();
            assert!(!passed, "{mood:?} lets a drift through, started from {}", from.display());
        }
        scratch.run_on(&[], scratch.root()).expect_err("what a mood has left lets a drift through");
    }
    accepted_by_the_tool(scratch, name);
    scratch.checkout();
}

/// Where a test may be started from.
fn places(scratch: &Scratch) -> [PathBuf; 4] {
    ["/".into(), scratch.root().to_owned(), scratch.package(), scratch.snapshots()]
}

/// What is as it is committed passes from anywhere, and leaves nothing behind.
pub(crate) fn assert_the_files_are_found_from_anywhere(scratch: &Scratch) {
    scratch.checkout();
    let before = scratch.files();
    for from in places(scratch) {
        for mood in [&[][..], &[("INSTA_UPDATE", "always")]] {
            let passed = scratch.run_on(mood, &from);
            passed.unwrap_or_else(|message| panic!("{mood:?} fails, started from {}: {message}", from.display()));
            assert_eq!(scratch.files(), before, "something was written, started from {}", from.display());
        }
    }
}

/// A file that is gone fails in each mood, and says so.
pub(crate) fn assert_none_lets_a_missing_file_through(scratch: &Scratch, name: &str) {
    for mood in ALL {
        scratch.checkout();
        fs::remove_file(scratch.snapshots().join(name)).unwrap();
        let message = scratch.run_on(mood, scratch.root()).expect_err("a missing file passes");
        assert!(message.contains(&format!("{name} is missing")), "{mood:?}: {message}");
    }
    scratch.checkout();
}

/// `cargo insta test --accept --unreferenced=delete`, over and over: it runs the test so that nothing fails, takes
/// every pending file, and deletes what no test asked for.
fn accepted_by_the_tool(scratch: &Scratch, name: &str) {
    scratch.checkout();
    let references = scratch.root().join("references");
    for round in 1..=3 {
        let _ = fs::remove_file(&references);
        let mood = [
            ("INSTA_CARGO_INSTA", "1"),
            ("INSTA_FORCE_PASS", "1"),
            ("INSTA_UPDATE", "new"),
            ("INSTA_SNAPSHOT_REFERENCES_FILE", references.to_str().unwrap()),
        ];
        scratch.run_on(&mood, scratch.root()).expect_err("the tool's own run lets a drift through");
        let asked = fs::read_to_string(&references).unwrap();
        let asked: BTreeSet<_> = asked.lines().filter_map(|line| Path::new(line).file_name()).collect();
        for entry in fs::read_dir(scratch.snapshots()).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension().and_then(|extension| extension.to_str()) {
                Some("new") => fs::rename(&entry, entry.with_extension("")).unwrap(),
                _ if !asked.contains(entry.file_name().unwrap()) => fs::remove_file(&entry).unwrap(),
                _ => {}
            }
        }
        let file = fs::read_to_string(scratch.snapshots().join(name)).unwrap();
        assert!(file.contains("\ndrift:\n"), "in round {round} the section is gone:\n{file}");
    }
}

//! `docs/contracts.md`, done: each section's edits on a scratch copy, with real runs, and what the page shows is what
//! came out. The page is the script; it cannot rot.
//!
//! Blocks of the page, in the order of a section:
//!
//! - `rust contract.rs`: the whole test file that every section begins with
//! - `diff source`: an edit of it
//! - `text message`: the test fails with this
//! - `diff NAME.snap`: what a review shows of the file
//! - `<!-- accept -->`: the new files are accepted, and then the test passes
//! - `<!-- passes -->`: the test does
//!
//! After a change: `WALKTHROUGHS=overwrite cargo test -p idem-walkthroughs`, then read the difference as a user would.
#![allow(clippy::unwrap_used, reason = "a test's panic is its verdict, also in the helpers of tests")]

mod moods;
mod page;
mod scratch;

use std::fs;
use std::path::Path;
use std::process::Command;

use page::{Block, Page};
use scratch::Scratch;
use similar::TextDiff;

#[test]
fn what_the_page_shows_is_what_happens() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts.md");
    let written = fs::read_to_string(&path).unwrap();
    let mut page = Page::read(&written);
    assert_eq!(page.to_string(), written, "the page is not read as it is written");
    let scratch = Scratch::new(page.source());
    scratch.first_files();
    moods::assert_the_files_are_found_from_anywhere(&scratch);
    moods::assert_none_lets_a_missing_file_through(&scratch, "create_payment.v1.snap");
    // One change stands for all in every mood; the others are told apart by what they change.
    let mut moods = moods::ALL;
    for section in page.sections() {
        scratch.restart();
        for block in section {
            if let Some(name) = replay(&scratch, block) {
                moods::assert_none_lets_it_through(moods, &scratch, &name);
                moods = moods::WORST;
            }
        }
    }
    let done = page.to_string();
    if std::env::var("WALKTHROUGHS").as_deref() == Ok("overwrite") {
        fs::write(&path, done).unwrap();
    } else {
        let difference =
            TextDiff::from_lines(&written, &done).unified_diff().header("page", "what happens").to_string();
        assert!(difference.is_empty(), "{difference}");
    }
}

/// Does what a block says, and puts what came out in the place of what it shows. The name of a file that drifts.
fn replay(scratch: &Scratch, block: &mut Block) -> Option<String> {
    match block {
        Block::Edit(edit) => scratch.edit(edit),
        Block::Message(shown) => *shown = scratch.run(&[]).expect_err("the test passes, and the page says it fails"),
        Block::Review { name, shown } => {
            let (old, new) = scratch.review(name);
            *shown = difference(&old, &new);
            return new.contains("\ndrift:\n").then(|| name.clone());
        }
        Block::Accept => {
            scratch.accept();
            scratch.run(&[]).unwrap_or_else(|message| panic!("accepted, and it still fails: {message}"));
        }
        Block::Passes => scratch.run(&[]).unwrap_or_else(|message| panic!("the page says it passes: {message}")),
    }
    None
}

/// As a review shows it: without headings, and without insta's own lines.
fn difference(old: &str, new: &str) -> String {
    let text = |file: &str| file.split_once("\n---\n").map_or("", |(_, text)| text).trim_end().to_owned() + "\n";
    let (old, new) = (if old.is_empty() { String::new() } else { text(old) }, text(new));
    let difference = TextDiff::from_lines(&old, &new).unified_diff().context_radius(1).to_string();
    let hunks = difference.split("@@").skip(2).step_by(2).map(|hunk| hunk.trim_matches('\n').to_owned());
    hunks.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_contract_whose_test_is_gone_or_that_waits_for_review_is_told_of() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("orphans");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for name in ["asked.v1.snap", "gone.v1.snap"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let references = folder.join("references");
    let run = |asked: &[&str]| {
        let asked = asked.iter().map(|name| format!("{}\n", folder.join("elsewhere/..").join(name).display()));
        fs::write(&references, asked.collect::<String>()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../orphans");
        Command::new(script).arg(&references).arg(&folder).output().unwrap()
    };
    let output = run(&["asked.v1.snap"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("gone.v1.snap") && !told.contains("asked.v1.snap"), "{told}");
    assert!(run(&["asked.v1.snap", "gone.v1.snap"]).status.success());
    // What waits for a review fails too, and git does not show it.
    for name in ["asked.v1.snap.new", ".inline.rs.pending-snap"] {
        fs::write(folder.join(name), "").unwrap();
        let output = run(&["asked.v1.snap", "gone.v1.snap"]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && told.contains(&format!("nobody has looked at {}", folder.join(name).display())),
            "{told}"
        );
        fs::remove_file(folder.join(name)).unwrap();
    }
}

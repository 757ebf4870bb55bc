//! The program itself, as somebody runs it who tries idem.

use std::path::Path;
use std::process::Command;

#[test]
fn a_demo_run_shows_that_all_is_right_and_leaves_nothing_behind() -> Result<(), Box<dyn std::error::Error>> {
    let (folder, temporary) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut demo = Command::new(env!("CARGO_BIN_EXE_payments"));
    let ran = demo.arg("demo").current_dir(&folder).env("TMPDIR", temporary.path()).output()?;
    let shown = String::from_utf8(ran.stdout)?;
    assert!(ran.status.success(), "{shown}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(shown.trim_end().ends_with("23 kinds of second request, each got what it should."), "{shown}");
    let is_empty = |folder: &Path| folder.read_dir().map(|mut files| files.next().is_none());
    assert!(is_empty(folder.path())?, "files where it was run");
    assert!(is_empty(temporary.path())?, "files where temporary ones are");
    Ok(())
}

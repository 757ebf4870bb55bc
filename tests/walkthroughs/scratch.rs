//! A package of its own that uses idem, member of a workspace of its own, compiled and run by cargo.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Scratch {
    root: PathBuf,
    base: String,
    /// The files that every section begins with.
    first: RefCell<Vec<(String, String)>>,
    /// What is committed.
    committed: RefCell<Vec<(String, String)>>,
    /// The test as it was compiled last, until the next edit.
    compiled: RefCell<Option<PathBuf>>,
}

impl Scratch {
    pub(crate) fn new(base: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walkthroughs");
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let package = root.join(MEMBER);
        let _ = fs::remove_dir_all(&package);
        fs::create_dir_all(package.join("tests/snapshots")).unwrap();
        fs::create_dir_all(package.join("src")).unwrap();
        fs::write(package.join("src/lib.rs"), "").unwrap();
        fs::write(package.join("Cargo.toml"), manifest(&workspace)).unwrap();
        fs::write(root.join("Cargo.toml"), WORKSPACE).unwrap();
        // The versions that the workspace is tested with, which are there without a network.
        fs::copy(workspace.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
        let scratch = Self {
            root,
            base: base.to_owned(),
            first: RefCell::default(),
            committed: RefCell::default(),
            compiled: RefCell::default(),
        };
        scratch.write_source(base);
        scratch
    }

    /// The files of the first run, accepted.
    pub(crate) fn first_files(&self) {
        let message = self.run(&[]).expect_err("there is no file yet");
        assert!(message.contains("is missing"), "{message}");
        self.accept();
        self.run(&[]).unwrap_or_else(|message| panic!("the page's own test fails: {message}"));
        *self.first.borrow_mut() = self.committed.borrow().clone();
    }

    pub(crate) fn restart(&self) {
        *self.committed.borrow_mut() = self.first.borrow().clone();
        self.checkout();
        self.write_source(&self.base);
    }

    /// Applies a difference without line numbers.
    pub(crate) fn edit(&self, edit: &str) {
        let side = |other: char| {
            let lines = edit.lines().filter(|line| !line.starts_with(other));
            lines.map(|line| line.get(1..).unwrap_or_default().to_owned() + "\n").collect::<String>()
        };
        let (old, new) = (side('+'), side('-'));
        let source = fs::read_to_string(self.source()).unwrap();
        assert_eq!(source.matches(&old).count(), 1, "the edit fits nowhere, or in several places:\n{edit}\n{source}");
        self.write_source(&source.replacen(&old, &new, 1));
    }

    /// Runs the test with what is committed. Its message, where it fails.
    pub(crate) fn run(&self, environment: &[(&str, &str)]) -> Result<(), String> {
        self.checkout();
        self.run_on(environment, &self.root)
    }

    /// Runs the test with the files as they lie there, from some directory.
    pub(crate) fn run_on(&self, environment: &[(&str, &str)], from: &Path) -> Result<(), String> {
        let mut command = Command::new(self.compiled());
        plain(&mut command).envs(environment.iter().copied()).current_dir(from);
        let output = command.output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let message = told.rsplit_once("/tests/contract.rs:").map_or(&*told, |(_, message)| message);
        let message = message.split_once('\n').map_or(message, |(_, message)| message);
        let end = message.find("\nnote: run with").or_else(|| message.find("\n\n\nfailures:"));
        let message = end.map_or(message, |end| &message[..end]);
        Err(message.replace(&format!("{}/", self.package().display()), "").trim_end().to_owned() + "\n")
    }

    /// A file before and after an accept of everything.
    pub(crate) fn review(&self, name: &str) -> (String, String) {
        let old = self.committed.borrow().iter().find(|(file, _)| file == name).map(|(_, text)| text.clone());
        let _ = self.run(&[("INSTA_UPDATE", "always")]);
        (old.unwrap_or_default(), fs::read_to_string(self.snapshots().join(name)).unwrap())
    }

    /// Takes everything that insta writes, and commits it.
    pub(crate) fn accept(&self) {
        let _ = self.run(&[("INSTA_UPDATE", "always")]);
        self.commit();
    }

    /// Commits the files as they lie there.
    pub(crate) fn commit(&self) {
        let mut files: Vec<_> = fs::read_dir(self.snapshots())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "snap"))
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
            .collect();
        files.sort();
        *self.committed.borrow_mut() = files;
    }

    /// The files as they are committed, and no other.
    pub(crate) fn checkout(&self) {
        fs::remove_dir_all(self.snapshots()).unwrap();
        fs::create_dir(self.snapshots()).unwrap();
        for (name, text) in &*self.committed.borrow() {
            fs::write(self.snapshots().join(name), text).unwrap();
        }
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.package().join("tests/snapshots")
    }

    /// The workspace's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn package(&self) -> PathBuf {
        self.root.join(MEMBER)
    }

    /// All files of the workspace but what cargo builds, with their contents.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut files, mut folders) = (BTreeMap::new(), vec![self.root.clone()]);
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_file() {
                    let content = fs::read(&path).unwrap();
                    files.insert(path, content);
                } else if path != self.root.join("target") {
                    folders.push(path);
                }
            }
        }
        files
    }

    fn source(&self) -> PathBuf {
        self.package().join("tests/contract.rs")
    }

    fn write_source(&self, source: &str) {
        fs::write(self.source(), source).unwrap();
        *self.compiled.borrow_mut() = None;
    }

    /// The test, compiled if it was edited.
    fn compiled(&self) -> PathBuf {
        if let Some(compiled) = &*self.compiled.borrow() {
            return compiled.clone();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        plain(&mut command).args(["test", "--no-run", "--offline", "--test", "contract"]).current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", self.root.join("target")).env("CARGO_TERM_COLOR", "never");
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        let executable = told.lines().find_map(|line| line.trim().strip_prefix("Executable tests/contract.rs ("));
        let executable = executable.and_then(|rest| rest.strip_suffix(')')).unwrap_or_else(|| panic!("{told}"));
        let compiled = self.root.join(executable);
        *self.compiled.borrow_mut() = Some(compiled.clone());
        compiled
    }
}

/// Without what the environment of this test says of insta and of cargo.
fn plain(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| {
            name.starts_with("INSTA_") || name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST")
        });
        if is_ours {
            command.env_remove(name);
        }
    }
    command.env_remove("CI").env_remove("RUSTFLAGS").env("RUST_BACKTRACE", "0")
}

fn manifest(workspace: &Path) -> String {
    format!(
        r#"[package]
name = "scratch"
version = "0.0.0"
edition = "2024"

[dev-dependencies]
idem-core = {{ path = "{}", features = ["snapshot"] }}
rust_decimal = {{ version = "1", default-features = false, features = ["std"] }}
serde = {{ version = "1", features = ["derive"] }}

[lints.rust]
dead_code = "allow"
"#,
        workspace.join("idem-core").display()
    )
}

const MEMBER: &str = "payments";

const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = ["payments"]

[profile.dev]
debug = 0
"#;

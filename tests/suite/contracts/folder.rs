//! A folder of contract files of a test's own, and an insta that does as it is told.

use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use idem_core::IdempotentCommand;
use tempfile::TempDir;

pub(super) struct Folder {
    directory: RefCell<TempDir>,
    /// The names that insta was asked about last.
    asked: RefCell<Vec<String>>,
}

/// What insta does with a text that differs.
#[derive(Clone, Copy)]
pub(super) enum Insta {
    /// It fails, as without any setting.
    Fails,
    /// It passes and writes nothing: `INSTA_FORCE_PASS=1`.
    Passes,
    /// It passes and writes the file: `INSTA_UPDATE=always`, or a careless accept.
    Accepts,
}

impl Insta {
    pub(super) const ALL: [Self; 3] = [Self::Fails, Self::Passes, Self::Accepts];
}

impl Folder {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("snapshots")).unwrap();
        Self { directory: RefCell::new(directory), asked: RefCell::default() }
    }

    /// One with the file of a command as it is.
    pub(super) fn with<C: IdempotentCommand>(samples: &[(&str, &C)]) -> Self {
        let folder = Self::new();
        let message = folder.assert(Insta::Accepts, samples).unwrap_err();
        assert!(message.contains("is missing"), "{message}");
        folder.assert(Insta::Fails, samples).unwrap();
        folder
    }

    /// Asserts a contract in this folder, as a run of its own. The message, where it fails.
    pub(super) fn assert<C: IdempotentCommand>(&self, insta: Insta, samples: &[(&str, &C)]) -> Result<(), String> {
        // One process holds one file to one text; in another place it is as if the code had changed in between.
        let next = tempfile::tempdir().unwrap();
        fs::rename(self.directory.borrow().path().join("snapshots"), next.path().join("snapshots")).unwrap();
        self.directory.replace(next);
        self.assert_in_the_same_run(insta, samples)
    }

    pub(super) fn assert_in_the_same_run<C: IdempotentCommand>(
        &self,
        insta: Insta,
        samples: &[(&str, &C)],
    ) -> Result<(), String> {
        self.asked.borrow_mut().clear();
        let manifest = self.directory.borrow().path().to_str().unwrap().to_owned();
        let insta = |name: &str, text: &str| {
            self.asked.borrow_mut().push(name.to_owned());
            let is_same = self.has(name) && self.read(name).trim_end() == text.trim_end();
            match insta {
                _ if is_same => {}
                Insta::Fails => panic!("insta fails"),
                Insta::Passes => {}
                Insta::Accepts => self.write(name, text),
            }
        };
        let run = || idem_core::__private::assert_contract::<C>(&manifest, "test.rs", samples, &insta);
        let panic = catch_unwind(AssertUnwindSafe(run)).err();
        panic.map_or(Ok(()), |panic| Err(panic.downcast_ref::<String>().cloned().unwrap_or_default()))
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The text of a file, without insta's heading.
    pub(super) fn read(&self, name: &str) -> String {
        let content = fs::read_to_string(self.path(name)).unwrap();
        content.split_once("\n---\n").unwrap().1.to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), format!("---\nsource: test.rs\n---\n{text}")).unwrap();
    }

    pub(super) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.borrow().path().join("snapshots").join(format!("{name}.snap"))
    }
}

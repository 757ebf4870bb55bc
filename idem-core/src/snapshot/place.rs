//! Where a contract's files are.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::Committed;

/// The files of one operation.
pub(super) struct Place {
    folder: PathBuf,
    operation: String,
}

impl Place {
    /// The `snapshots` folder beside a source file. The compiler names the file from the workspace's root, which lies
    /// at or above the manifest; where the test was started from does not matter.
    pub(super) fn of(manifest: &Path, file: &Path, operation: &str) -> Self {
        let root = manifest.ancestors().find(|root| root.join(file).exists());
        let file = root.unwrap_or(manifest).join(file);
        let folder = file.parent().unwrap_or(manifest).join("snapshots");
        Self { folder, operation: operation.to_owned() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn operation(&self) -> &str {
        &self.operation
    }

    /// `create_payment.v1`
    pub(super) fn name(&self, version: u32) -> String {
        format!("{}.v{version}", self.operation)
    }

    pub(super) fn file(&self, version: u32) -> PathBuf {
        self.folder.join(format!("{}.snap", self.name(version)))
    }

    pub(super) fn committed(&self, version: u32) -> Committed {
        match fs::read(self.file(version)) {
            Ok(content) => Committed::read(&String::from_utf8_lossy(&content)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Committed::Missing,
            Err(error) => Committed::Unreadable(error.to_string()),
        }
    }

    /// The versions that have a file, from the oldest.
    pub(super) fn versions(&self) -> Vec<u32> {
        let version = |name: &str| {
            let name = name.strip_suffix(".snap")?.strip_prefix(&*self.operation)?.strip_prefix(".v")?;
            name.parse().ok().filter(|version: &u32| version.to_string() == name)
        };
        let mut versions: Vec<_> = self.file_names().iter().filter_map(|name| version(name)).collect();
        versions.sort_unstable();
        versions
    }

    /// The contracts of other operations in the folder, by their files' names.
    pub(super) fn others(&self) -> Vec<(String, Committed)> {
        let mut others = self.file_names();
        others.retain(|name| name.ends_with(".snap") && !name.starts_with(&format!("{}.v", self.operation)));
        others.sort();
        let read = |name: String| {
            let content = fs::read_to_string(self.folder.join(&name)).ok()?;
            Some((name, Committed::read(&content)))
        };
        others.into_iter().filter_map(read).collect()
    }

    fn file_names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

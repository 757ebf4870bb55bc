//! The contract of a command as a reviewed file. See [`assert_contract!`](crate::assert_contract).

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::command::IdempotentCommand;
use crate::contract::visible;

/// Asserts that a command's contract, and the hashes of samples, are the committed ones.
///
/// One file for each operation and version, `<operation>.v<N>.snap`, in the `snapshots` folder beside the test: the
/// contract's text, then each sample's preimage and hash. A change shows as a diff of it in `cargo insta review`.
/// White space and look-alikes are escaped, so none can hide.
///
/// ```
/// use idem_core::{IdempotentCommand, assert_contract};
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "create_payment", version = 1)]
/// struct CreatePayment {
///     account_id: String,
///     #[idem(default = "web")]
///     channel: Option<String>,
/// }
///
/// #[test]
/// fn create_payment_contract() {
///     assert_contract!(CreatePayment, {
///         "typical" => CreatePayment { account_id: "acc_1".into(), channel: Some("app".into()) },
///         "minimal" => CreatePayment { account_id: "acc_1".into(), channel: None },
///     });
/// }
/// ```
///
/// # Panics
///
/// When the file differs, is missing, or two samples carry one label.
#[allow(clippy::test_attr_in_doctest)] // the example is the whole test, as it stands in an application
#[macro_export]
macro_rules! assert_contract {
    ($command:ty, { $($label:expr => $sample:expr),* $(,)? }) => {{
        let snapshot = $crate::__private::snapshot::<$command>(
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::file!(),
            &[$(($label, &$sample)),*],
        );
        snapshot.settings().bind(|| $crate::__private::insta::assert_snapshot!(snapshot.name(), snapshot.text()));
    }};
}

/// A contract's file as it should be.
#[doc(hidden)]
#[derive(Debug)]
pub struct Snapshot {
    folder: PathBuf,
    name: String,
    text: String,
}

impl Snapshot {
    /// insta settings of our own: a user's filters and redactions must not rewrite a hash.
    pub fn settings(&self) -> insta::Settings {
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(&self.folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings
    }

    /// `create_payment.v1`
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The contract and the samples.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[doc(hidden)]
pub fn snapshot<C: IdempotentCommand>(manifest: &str, file: &str, samples: &[(&str, &C)]) -> Snapshot {
    let name = format!("{}.v{}", C::OPERATION, C::VERSION);
    let folder = folder_of(Path::new(manifest), Path::new(file)).join("snapshots");
    let text = text(samples);
    refuse_second_text(folder.join(&name), &text);
    Snapshot { folder, name, text }
}

fn text<C: IdempotentCommand>(samples: &[(&str, &C)]) -> String {
    let mut text = C::contract().to_string();
    let mut labels = HashSet::new();
    for (label, sample) in samples {
        assert!(labels.insert(label), "two samples of `{}` are labelled {label:?}", C::OPERATION);
        let label = visible(&serde_json::Value::from(*label).to_string());
        let preimage = visible(&sample.preimage());
        write!(text, "\nsample {label}\n  preimage: {preimage}\n  hash: {}\n", sample.command_hash())
            .expect("a String takes everything");
    }
    text
}

/// Two tests that write one file would take turns in overwriting it.
fn refuse_second_text(file: PathBuf, text: &str) {
    static ASSERTED: Mutex<Option<HashMap<PathBuf, String>>> = Mutex::new(None);
    let mut asserted = ASSERTED.lock().unwrap_or_else(PoisonError::into_inner);
    let first = asserted.get_or_insert_default().entry(file).or_insert_with(|| text.to_owned()).clone();
    drop(asserted);
    assert!(
        first == text,
        "one operation and version is asserted twice with different contents; give all samples in one \
         `assert_contract!`, and another operation another name\n--- first ---\n{first}\n--- now ---\n{text}"
    );
}

/// The folder of a source file. The compiler names it from the workspace's root, which lies at or above the manifest;
/// where the test was started from does not matter.
fn folder_of(manifest: &Path, file: &Path) -> PathBuf {
    let root = manifest.ancestors().find(|root| root.join(file).exists());
    let file = root.unwrap_or(manifest).join(file);
    file.parent().map_or_else(|| manifest.to_owned(), Path::to_owned)
}

//! The contract of a command as a reviewed file. See [`assert_contract!`](crate::assert_contract).

mod drift;
mod file;
mod page;
mod place;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use drift::Finding;
use file::Committed;
use page::Page;
use place::Place;

use crate::command::IdempotentCommand;

/// Asserts that a command's contract, and the hashes of samples, are the committed ones.
///
/// One file for each operation and version, `<operation>.v<N>.snap`, in the `snapshots` folder beside the test: the
/// contract's text, then each sample's preimage and hash. A change shows as a diff of it in `cargo insta review`.
/// White space and look-alikes are escaped, so none can hide. Older versions that the command keeps have their own
/// files, with the samples that they can say.
///
/// A file that is missing or differs fails the test once, whatever insta is told: look at it, and commit it. A change
/// that moves hashes is written with a `drift:` section at its top, and a file with such a section fails as well. To
/// accept it is not enough; whoever means it takes the section out by hand.
///
/// Samples may be added. One that is taken away or edited is a drift too: give a new value a new label. What no sample
/// shows could drift unseen, so the test fails with a list of it: each `Option` both ways, each variant, an element of
/// each list and map, a value that differs from each default; by the rules of each older version that is kept as well.
///
/// ```
/// use idem_core::{IdempotentCommand, assert_contract};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
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
/// With all that is wrong, each with its consequence and the way out.
#[allow(clippy::test_attr_in_doctest)] // the example is the whole test, as it stands in an application
#[macro_export]
macro_rules! assert_contract {
    ($command:ty, { $($label:expr => $sample:expr),* $(,)? }) => {
        $crate::__private::assert_contract::<$command>(
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::file!(),
            &[$(($label, &$sample)),*],
            // Expanded in the test, where insta finds its workspace and the settings of it.
            &|name, text| $crate::__private::insta::assert_snapshot!(name, text),
        )
    };
}

/// What [`assert_contract!`](crate::assert_contract) does.
///
/// The verdict is this function's own. insta writes what is to be reviewed and shows it; what it is told by its
/// environment decides nothing.
#[doc(hidden)]
#[track_caller]
pub fn assert_contract<C: IdempotentCommand>(
    manifest: &str,
    file: &str,
    samples: &[(&str, &C)],
    insta: &dyn Fn(&str, &str),
) {
    let place = Place::of(Path::new(manifest), Path::new(file), C::OPERATION);
    let mut findings = Vec::new();
    for version in (C::OLDEST..=C::VERSION).filter(|version| C::keeps(*version)) {
        let Some(page) = Page::of(version, samples) else { continue };
        refuse_second_text(&place.file(version), &page);
        let committed = place.committed(version);
        let finding = Finding::of(&page, &committed, &place);
        let text = match (&finding, &committed) {
            // Until somebody takes the section out, nothing writes over the file, and nothing deletes it either.
            (_, Committed::Drifted(text)) => text.clone(),
            (Some(finding), _) => format!("{}{page}", finding.section()),
            (None, _) => page.to_string(),
        };
        let said = under_own_settings(&place, || insta(&place.name(version), &text));
        findings.extend(finding.map(|finding| finding.to_string()).or(said));
    }
    for version in place.versions().into_iter().filter(|version| !C::keeps(*version)) {
        // Named to insta, so that it does not delete the file as one that nobody asks for.
        if let Committed::Read(file) = place.committed(version) {
            under_own_settings(&place, || insta(&place.name(version), file.text()));
        }
        findings.push(drift::not_kept(&place, version, C::VERSION));
    }
    findings.extend(uncovered(samples));
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

/// insta settings of our own: a user's filters and redactions must not rewrite a hash. Gives back what insta says
/// where it fails.
fn under_own_settings(place: &Place, run: impl FnOnce()) -> Option<String> {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(place.folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // Caught, so that every file is looked at before the test ends.
    let panic = catch_unwind(AssertUnwindSafe(|| settings.bind(run))).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "insta failed".to_owned()))
}

/// What no sample shows of the present version, then of each older one that the command keeps, where it shows less.
fn uncovered<C: IdempotentCommand>(samples: &[(&str, &C)]) -> Vec<String> {
    let (mut findings, mut known) = (Vec::new(), HashSet::new());
    for version in (C::OLDEST..=C::VERSION).rev().filter(|version| C::keeps(*version)) {
        let Some(contract) = C::contract_at(version) else { continue };
        let preimages: Vec<_> = samples.iter().filter_map(|(_, sample)| sample.preimage_at(version)).collect();
        let mut uncovered = contract.uncovered(preimages.iter().map(String::as_str));
        uncovered.retain(|part| known.insert(part.clone()));
        if !uncovered.is_empty() {
            let old = if version < C::VERSION { format!(" by the rules of version {version}") } else { String::new() };
            findings.push(format!(
                "no sample of `{}` shows{old}\n  {}\nWhat no sample shows can drift unseen: add samples, under new labels.",
                C::OPERATION,
                uncovered.join("\n  ")
            ));
        }
    }
    findings
}

/// Two tests that write one file would take turns in overwriting it.
fn refuse_second_text(file: &Path, page: &Page) {
    static ASSERTED: Mutex<Option<HashMap<std::path::PathBuf, String>>> = Mutex::new(None);
    let text = page.to_string();
    let mut asserted = ASSERTED.lock().unwrap_or_else(PoisonError::into_inner);
    let first = asserted.get_or_insert_default().entry(file.to_owned()).or_insert_with(|| text.clone()).clone();
    drop(asserted);
    assert!(
        first == text,
        "one operation and version is asserted twice with different contents; give all samples in one \
         `assert_contract!`, and another operation another name\n--- first ---\n{first}\n--- now ---\n{text}"
    );
}

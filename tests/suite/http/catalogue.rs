//! The published list of codes: what the source has and what the page says are the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use idem_axum::{Code, Idem, MemoryStore};

use crate::http::bench::{Server, pay};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// What the table of codes says: code, status, next, beside the code's anchor.
fn published() -> Vec<(String, String, String)> {
    let page = page("http.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| <a id=\""));
    rows.map(|row| {
        let (anchor, rest) = row.split_once("\"></a>`").unwrap();
        let cells: Vec<_> = rest.split('|').map(str::trim).collect();
        assert_eq!(cells[0].trim_end_matches('`'), anchor, "an anchor leads to another code");
        (anchor.to_owned(), cells[1].to_owned(), cells[2].to_owned())
    })
    .collect()
}

#[test]
fn every_code_of_the_source_is_published_once_and_none_besides() {
    let of = |code: &Code| {
        (code.as_str().to_owned(), code.status().to_string(), code.next().as_str().unwrap_or_default().to_owned())
    };
    let mut source: Vec<_> = Code::ALL.iter().map(of).collect();
    let mut published = published();
    source.sort();
    published.sort();
    assert_eq!(published, source);
}

#[test]
fn no_text_of_the_repository_names_a_code_that_is_none() {
    let known: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let mut named = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in [
        "README.md",
        "CHANGELOG.md",
        "docs",
        "idem-axum/src",
        "idem-core/src",
        "examples/payments/src",
        "tests/suite/http",
    ] {
        texts(&root.join(folder), &mut |text| {
            for (at, _) in text.match_indices(PREFIX) {
                let word = text[at..].split(|c: char| !(c.is_ascii_uppercase() || c == '_')).next().unwrap();
                // The name of the header's constant, and what ends in `…`.
                if word.len() > PREFIX.len() && word != "IDEMPOTENCY_KEY" {
                    named.insert(word.to_owned());
                }
            }
        });
    }
    let header_names = ["IDEMPOTENCY_REPLAYED", "IDEMPOTENCY_EXPIRES"];
    let unknown: Vec<_> =
        named.iter().filter(|word| !known.contains(word.as_str()) && !header_names.contains(&word.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(known.iter().all(|code| named.contains(*code)), "the search finds none");
}

const PREFIX: &str = "IDEMPOTENCY_";

/// Reads a file, or all of a folder.
fn texts(path: &Path, read: &mut impl FnMut(&str)) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| texts(&entry.unwrap().path(), read));
    } else if path.extension().is_some_and(|ending| ending == "md" || ending == "rs") {
        read(&fs::read_to_string(path).unwrap());
    }
}

#[tokio::test]
async fn the_type_of_a_problem_leads_to_the_codes_anchor_on_the_page() {
    let idem = Idem::builder(MemoryStore::new()).single_tenant("acme").unwrap().problem_types("http.md#").build();
    let server = Server::start(pay(idem.unwrap(), async |_, _| Ok(()))).await;
    let problem = server.pay("a b").await.json();
    let (file, anchor) = problem["type"].as_str().unwrap().split_once('#').unwrap();
    assert!(page(file).contains(&format!("<a id=\"{anchor}\"></a>")), "{problem}");
}

#[test]
fn every_advice_is_explained_to_clients() {
    for name in ["http.md", "clients.md"] {
        let page = page(name);
        for next in Code::ALL.iter().filter_map(|code| code.next().as_str()) {
            let explained = [format!("| `{next}` |"), format!("| `next: {next}` |")];
            assert!(explained.iter().any(|row| page.contains(row)), "{name} says nothing of {next}");
        }
    }
}

#[test]
fn the_links_between_the_pages_lead_somewhere() {
    for name in ["http.md", "clients.md"] {
        let text = page(name);
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = page(if file.is_empty() { name } else { file });
            let heading = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-") == anchor;
            let found = target.lines().filter(|line| line.starts_with('#')).any(heading);
            assert!(anchor.is_empty() || found, "{name}: {link}");
        }
    }
}

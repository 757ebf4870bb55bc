//! What people copy: the commands of the documentation and the examples.

use std::fs;

use super::catalogue::files;

/// A member that is ignored today may mean something after a deploy, so every example of ours refuses it.
#[test]
fn every_example_of_a_command_that_is_read_denies_unknown_fields() {
    let mut read = Vec::new();
    for folder in ["idem-core/src", "idem-derive/src", "idem-axum/src", "idem-sqlx/src", "docs", "examples"] {
        for ending in ["rs", "md"] {
            read.extend(files(folder, ending));
        }
    }
    read.extend(files(".", "md"));
    let mut count = 0;
    for path in read {
        let text = fs::read_to_string(&path).unwrap();
        let (all, lax) = commands(&text);
        count += all;
        let shown = contracts_that_do_not_deny(&text);
        assert!(shown.is_empty(), "{} shows contracts that ignore unknown fields: lines {shown:?}", path.display());
        assert!(lax.is_empty(), "{} has commands that ignore unknown fields:\n{}", path.display(), lax.join("\n"));
    }
    assert!(count >= 10, "only {count} commands were found");
}

#[test]
fn an_example_that_does_not_deny_is_found() {
    let lax = "/// # #[derive(serde::Deserialize, idem_core::IdempotentCommand)]\n/// # struct Pay {}\n";
    assert_eq!(commands(lax), (1, vec!["struct Pay {}".to_owned()]));
    let denies = "#[derive(IdempotentCommand, Deserialize)]\n#[serde(deny_unknown_fields)]\npub enum Pay {}\n";
    assert_eq!(commands(denies), (1, vec![]));
    assert_eq!(commands("#[derive(IdempotentCommand)]\nstruct Made;\n"), (0, vec![]));
}

#[test]
fn a_contract_shown_that_does_not_deny_is_found() {
    let shown = "/// form: idem/1\n/// unknown fields: not denied here\n+unknown fields: not denied here\n";
    assert_eq!(contracts_that_do_not_deny(shown), [2, 3]);
    assert_eq!(contracts_that_do_not_deny("+unknown fields: denied\nOf `unknown fields: not denied here`\n"), [0; 0]);
}

/// The lines of contracts, in an example or in a review, that say so.
fn contracts_that_do_not_deny(text: &str) -> Vec<usize> {
    let is_lax = |line: &str| {
        line.trim_start_matches(['/', '!', '+', '-', ' ', '"']).starts_with("unknown fields: not denied here")
    };
    text.lines().zip(1..).filter(|(line, _)| is_lax(line)).map(|(_, number)| number).collect()
}

/// How many commands derive `Deserialize`, and those of them that do not deny.
fn commands(text: &str) -> (usize, Vec<String>) {
    let mut lines = text.lines().map(|line| line.trim_start_matches(['/', '!', '#', ' ']));
    let (mut count, mut lax) = (0, Vec::new());
    while let Some(line) = lines.next() {
        let is_command = line.starts_with("[derive(") && line.contains("IdempotentCommand");
        if !is_command || !line.contains("Deserialize") {
            continue;
        }
        count += 1;
        let mut denies = false;
        for line in lines.by_ref() {
            denies |= line.starts_with("[serde(") && line.contains("deny_unknown_fields");
            if line.contains("struct ") || line.contains("enum ") {
                lax.extend((!denies).then(|| line.to_owned()));
                break;
            }
        }
    }
    (count, lax)
}

//! What a change of a contract does, rule by rule, over a catalogue of pairs.

mod pairs;
mod requests;

use std::collections::BTreeSet;
use std::fmt::Write;

use idem_core::contract::{self, Rule};
use idem_core::{CommandHash, Contract};
use pairs::PAIRS;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

/// One command before and after a change.
struct Pair {
    name: &'static str,
    contracts: fn() -> [Contract; 2],
    /// The hashes of one request by both. `None`: it cannot be said.
    hashes: fn(&Value) -> [Option<CommandHash>; 2],
}

/// `>` where a rule sees the change, `<` where it sees the way back, `x` where it sees both.
#[test]
fn every_rule_is_run_on_every_pair() {
    let mut matrix = String::new();
    for (number, rule) in Rule::ALL.iter().enumerate() {
        writeln!(matrix, "{}{} ({})", "|".repeat(number), rule.code(), rule.effect()).unwrap();
    }
    for pair in PAIRS {
        let [old, new] = (pair.contracts)();
        let [there, back] = [codes(&old, &new), codes(&new, &old)];
        let cells = Rule::ALL.iter().map(|rule| match (there.contains(rule.code()), back.contains(rule.code())) {
            (true, true) => 'x',
            (true, false) => '>',
            (false, true) => '<',
            (false, false) => '.',
        });
        writeln!(matrix, "{} {}", String::from_iter(cells), pair.name).unwrap();
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("rules_on_pairs", matrix);
    });
}

#[test]
fn every_difference_is_told_in_words() {
    let mut told = String::new();
    for pair in PAIRS {
        let [old, new] = (pair.contracts)();
        writeln!(told, "{}", pair.name).unwrap();
        for change in Contract::diff(&old, &new) {
            writeln!(told, "  {}", change.to_string().replace('\n', "\n  ")).unwrap();
        }
        writeln!(told).unwrap();
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("changes_of_pairs", told);
    });
}

#[test]
fn each_rule_has_a_pair_that_triggers_it() {
    let seen: BTreeSet<_> = PAIRS
        .iter()
        .flat_map(|pair| {
            let [old, new] = (pair.contracts)();
            codes(&old, &new).into_iter().chain(codes(&new, &old))
        })
        .collect();
    let all: BTreeSet<_> = Rule::ALL.iter().map(Rule::code).collect();
    assert_eq!(all.len(), Rule::ALL.len(), "two rules of one code");
    // A form is not a command's to choose.
    let unseen: Vec<_> = all.difference(&seen).filter(|code| **code != "form_changed").collect();
    assert!(unseen.is_empty(), "no pair triggers {unseen:?}");
    let other_form = |text: String| contract::parse(&text.replace("idem/1", "idem/2")).unwrap();
    let [old, _] = (PAIRS[0].contracts)();
    assert_eq!(codes(&old, &other_form(old.to_string())), ["form_changed"].into());
}

#[test]
fn a_contract_does_not_differ_from_itself() {
    for pair in PAIRS {
        for contract in (pair.contracts)() {
            assert_eq!(Contract::diff(&contract, &contract), []);
            let read = contract::parse(&contract.to_string()).unwrap();
            assert_eq!(Contract::diff(&contract, &read), [], "{}", pair.name);
        }
    }
}

/// The promise of "additive", and that "breaking" is not said for nothing.
#[test]
fn additive_means_that_hashes_stay_and_breaking_that_some_do_not() {
    // The same requests in every run: a failure can be looked at again.
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    for pair in PAIRS {
        let [old, new] = (pair.contracts)();
        for (from, to, back) in [(&old, &new, false), (&new, &old, true)] {
            let keeps = Contract::keeps_hashes(from, to);
            let requests = requests::of(from);
            let (mut said, mut moved) = (0, None);
            for _ in 0..300 {
                let request = requests.new_tree(&mut runner).unwrap().current();
                let [mut was, mut is] = (pair.hashes)(&request);
                if back {
                    std::mem::swap(&mut was, &mut is);
                }
                if let Some(was) = was {
                    said += 1;
                    if is != Some(was) {
                        moved = Some(request);
                    }
                }
            }
            assert!(said >= 100, "{}: only {said} of the generated requests can be said", pair.name);
            match moved {
                Some(request) => assert!(!keeps, "{}: called additive, and moves {request}", pair.name),
                None => assert!(keeps, "{}: called breaking, and moves nothing", pair.name),
            }
        }
    }
}

fn codes(old: &Contract, new: &Contract) -> BTreeSet<&'static str> {
    Contract::diff(old, new).iter().map(|change| change.rule().code()).collect()
}

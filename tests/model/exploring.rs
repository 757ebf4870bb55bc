//! The configurations and the mutations, one after the other: each exploration takes both cores.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::config::Config;
use crate::rig::Reached;
use crate::steps::{Action, Explored};
use crate::world::World;
use crate::{mutations, table};

/// What one exploration came to.
struct Found {
    states: usize,
    steps: usize,
    took: Duration,
    reached: u64,
    broken: Vec<(&'static str, Way)>,
}

/// The states on the way to a broken promise, each with what happened in it.
type Way = Vec<(World, Option<Action>)>;

fn explore(config: Config, until: HasDiscoveries) -> Found {
    let explored = Explored::new(config);
    let reached = explored.rig.reached();
    let begun = Instant::now();
    let checker = explored.checker().threads(2).finish_when(until).spawn_dfs().join();
    let broken = checker.discoveries().into_iter().map(|(name, path)| (name, path.into_vec())).collect();
    Found {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        took: begun.elapsed(),
        reached: reached.load(Ordering::Relaxed),
        broken,
    }
}

/// The way to a broken promise, a step a line.
fn told(way: &[(World, Option<Action>)]) -> String {
    let mut text = String::new();
    for (world, action) in way {
        let row = world.row.as_ref().map(|row| {
            let calls: Vec<_> = row.calls.iter().map(|call| &call.state).collect();
            (row.status.name(), row.fence, row.owner.as_bytes()[0], row.revision, calls)
        });
        // Writing to a String does not fail.
        let _ = writeln!(text, "  at {} {row:?}, then {action:?}", world.now);
    }
    if let Some((world, _)) = way.last() {
        let _ = writeln!(text, "  {:?} {:?} {:?}", world.told, world.providers, world.clients);
    }
    text
}

/// Past the test harness, which keeps what a test prints for itself.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is open");
}

#[test]
fn no_configuration_breaks_a_promise() {
    let (mut states, begun) = (0, Instant::now());
    // One of them alone, to look into it.
    let only = std::env::var("IDEM_MODEL").unwrap_or_default();
    let soak = std::env::var_os("IDEM_SOAK").is_some();
    for (config, must_happen) in table::configurations().into_iter().filter(|(config, _)| config.name.contains(&only)) {
        let name = config.name;
        let config = if soak { config.lasting_longer() } else { config };
        let found = explore(config, HasDiscoveries::AnyFailures);
        let (took, steps) = (found.took.as_secs_f64(), found.steps);
        say(&format!("{name:<34} {:>9} states {steps:>10} steps {took:>6.1} s", found.states));
        states += found.states;
        if let Some((property, path)) = found.broken.first() {
            panic!("{name}: broken: {property}\n{}", told(path));
        }
        let happened = |what: &&Reached| found.reached & (1 << **what as u64) == 0;
        let missing: Vec<_> = must_happen.iter().filter(happened).collect();
        assert!(missing.is_empty(), "{name} shows little: never happened: {missing:?}");
    }
    say(&format!("{:<34} {states:>9} states {:>24.1} s", "all", begun.elapsed().as_secs_f64()));
}

#[test]
fn each_mutation_breaks_its_promise_and_nothing_is_broken_without_it() {
    for (mutation, config, promise) in mutations::table().into_iter().chain(mutations::further()) {
        let sound = explore(config.clone(), HasDiscoveries::AnyFailures);
        let broken: Vec<_> = sound.broken.iter().map(|(name, path)| format!("{name}\n{}", told(path))).collect();
        assert!(broken.is_empty(), "without {mutation:?} is broken: {}", broken.join("\n"));

        let until = HasDiscoveries::AllOf(BTreeSet::from([promise]));
        let mutated = explore(Config { mutation: Some(mutation), ..config }, until);
        let broken: BTreeSet<_> = mutated.broken.iter().map(|(name, _)| *name).collect();
        say(&format!("{mutation:<22?} breaks: {promise} ({} states; sound: {})", mutated.states, sound.states));
        assert!(broken.contains(promise), "{mutation:?} does not break: {promise}; it breaks {broken:?}");
    }
}

//! A roll-out over two releases, and back: nodes of neighbouring releases serve one key at the same time.
//!
//! Version 2 of the command has a field more. The release that brings it reads both versions and still writes the first
//! one; only the release after it writes the second. While a roll-out lasts, each node may go on or back whenever it
//! likes; a release is rolled out once the one before is everywhere, and is then the one that a rollback ends at.

use std::io::Write as _;

use idem_core::decide::{Decision, decide};
use idem_core::store::{End, Finish, NewClaim};
use idem_core::{CommandHash, IdempotentCommand, Record, Rules, Scope, StoredResponse, Tenant, Verdict, transition};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::world::{at, token};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Before {
    amount: u64,
}

/// The command of a release after the first; each writes another version.
macro_rules! after {
    ($name:ident, $writes:literal) => {
        #[derive(IdempotentCommand)]
        #[idem(operation = "pay", version = 2, previous = Before, writes = $writes)]
        struct $name {
            amount: u64,
            urgent: bool,
        }

        impl From<Before> for $name {
            fn from(before: Before) -> Self {
                Self { amount: before.amount, urgent: false }
            }
        }

        impl TryFrom<&$name> for Before {
            type Error = ();

            fn try_from(today: &$name) -> Result<Self, ()> {
                (!today.urgent).then_some(Self { amount: today.amount }).ok_or(())
            }
        }
    };
}
after!(ReadsBoth, 1);
after!(WritesNew, 2);

/// What a node does with a command depends on its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Release {
    First,
    ReadsBoth,
    WritesNew,
}

impl Release {
    const ALL: [Self; 3] = [Self::First, Self::ReadsBoth, Self::WritesNew];

    fn hash(self, amount: u64) -> CommandHash {
        match self {
            Self::First => Before { amount }.command_hash(),
            Self::ReadsBoth => ReadsBoth { amount, urgent: false }.command_hash(),
            Self::WritesNew => WritesNew { amount, urgent: false }.command_hash(),
        }
    }

    fn verdict(self, amount: u64, stored: &CommandHash) -> Verdict {
        match self {
            Self::First => Before { amount }.verdict(stored),
            Self::ReadsBoth => ReadsBoth { amount, urgent: false }.verdict(stored),
            Self::WritesNew => WritesNew { amount, urgent: false }.verdict(stored),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Fleet {
    nodes: [Release; 2],
    /// Whether the second release was ever rolled out further: the first one is not gone back to then.
    writes_new: bool,
    /// How many moves of nodes are left.
    moves: u8,
    /// By key: there are two, so that a record of each release may stand.
    rows: [Option<Record>; 2],
    /// How often the work ran, by key.
    ran: [u8; 2],
    /// A request for another amount got the record's answer.
    crossed: bool,
    /// A retry of the very command was told that it is another.
    refused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    To(u8, Release),
    /// A request at a node, for a key and an amount.
    Request(u8, u8, u64),
}

/// How a version is brought to a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// As it is documented.
    TwoReleases,
    /// The release that reads version 2 is left out.
    OneStep,
    /// A rollback goes on to the first release, where version 2 was written already.
    BackTwo,
}

struct RollOut {
    plan: Plan,
    scope: Scope,
    rules: Rules,
}

impl RollOut {
    fn new(plan: Plan) -> Self {
        let tenant = Tenant::new("t").expect("it is one");
        let scope = Scope::new(tenant, "pay", "k".parse().expect("it is one"));
        Self { plan, scope, rules: Rules::default() }
    }

    fn may_go(&self, fleet: &Fleet, node: u8, to: Release) -> bool {
        use Release::{First, ReadsBoth};
        let mut nodes = fleet.nodes;
        let from = std::mem::replace(&mut nodes[usize::from(node)], to);
        if self.plan == Plan::OneStep {
            return from != to && from != ReadsBoth && to != ReadsBoth;
        }
        let is_next = (from as u8).abs_diff(to as u8) == 1;
        // Never three releases at once.
        let is_fleet = (nodes[0] as u8).abs_diff(nodes[1] as u8) <= 1;
        is_next && is_fleet && (to != First || !fleet.writes_new || self.plan == Plan::BackTwo)
    }

    fn request(&self, fleet: &mut Fleet, node: u8, key: u8, amount: u64) -> bool {
        let release = fleet.nodes[usize::from(node)];
        let row = &mut fleet.rows[usize::from(key)];
        let Some(record) = row else {
            let new = NewClaim {
                scope: self.scope.clone(),
                hash: release.hash(amount),
                owner: token(key + 1),
                lease: self.rules.lease,
            };
            let mut record = transition::insert(&new, at(0));
            let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![amount as u8]) };
            let end = End::Completed { response, keep: self.rules.keep() };
            let finish = Finish { closed: Vec::new(), resource: None, end };
            let owner = record.ownership();
            assert!(transition::finish(&mut record, &owner, &finish, at(0)), "it owns the record");
            *row = Some(record);
            fleet.ran[usize::from(key)] += 1;
            return true;
        };
        let is_own = FIRST_AMOUNT == amount;
        match decide(record, release.verdict(amount, &record.hash), at(0), &self.rules) {
            Decision::Replay => fleet.crossed |= !is_own,
            Decision::Mismatch { .. } => fleet.refused |= is_own,
            _ => {}
        }
        true
    }
}

impl Model for RollOut {
    type State = Fleet;
    type Action = Move;

    fn init_states(&self) -> Vec<Fleet> {
        let nodes = [Release::First; 2];
        let (rows, ran) = ([None, None], [0; 2]);
        vec![Fleet { nodes, writes_new: false, moves: 8, rows, ran, crossed: false, refused: false }]
    }

    fn actions(&self, fleet: &Fleet, actions: &mut Vec<Move>) {
        for node in 0..2_u8 {
            let to = Release::ALL.into_iter().filter(|to| fleet.moves > 0 && self.may_go(fleet, node, *to));
            actions.extend(to.map(|to| Move::To(node, to)));
            for key in 0..2 {
                actions.push(Move::Request(node, key, FIRST_AMOUNT));
                // Whoever comes first says what the key means.
                if fleet.rows[usize::from(key)].is_some() {
                    actions.push(Move::Request(node, key, OTHER_AMOUNT));
                }
            }
        }
    }

    fn next_state(&self, fleet: &Fleet, action: Move) -> Option<Fleet> {
        let mut next = fleet.clone();
        match action {
            Move::To(node, release) => {
                next.nodes[usize::from(node)] = release;
                next.writes_new |= release == Release::WritesNew;
                next.moves -= 1;
            }
            Move::Request(node, key, amount) => {
                self.request(&mut next, node, key, amount);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing runs twice", |_, fleet: &Fleet| fleet.ran.iter().all(|ran| *ran <= 1)),
            Property::always("another amount gets no answer of this one", |_, fleet: &Fleet| !fleet.crossed),
            Property::always("a retry is never called another command", |_, fleet: &Fleet| !fleet.refused),
            Property::always(EVERY_NODE_ANSWERS, |roll_out: &Self, fleet: &Fleet| {
                let answers = |release: Release, record: &Record| {
                    let verdict = release.verdict(FIRST_AMOUNT, &record.hash);
                    decide(record, verdict, at(0), &roll_out.rules) == Decision::Replay
                };
                let each = |record: &Record| fleet.nodes.iter().all(|release| answers(*release, record));
                fleet.rows.iter().flatten().all(each)
            }),
            Property::sometimes(BOTH_STAND, |_, fleet: &Fleet| {
                let versions = fleet.rows.each_ref().map(|row| row.as_ref().map(|record| record.hash.version()));
                versions == [Some(1), Some(2)]
            }),
        ]
    }
}

#[test]
fn a_roll_out_in_two_releases_and_its_rollback_answer_every_retry() {
    let checker = RollOut::new(Plan::TwoReleases).checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    writeln!(std::io::stderr(), "roll-out and rollback: {states} states").expect("standard error is open");
    assert!(states > 100, "only {states} states");
}

#[test]
fn a_roll_out_in_one_release_and_a_rollback_over_two_leave_retries_without_an_answer() {
    for plan in [Plan::OneStep, Plan::BackTwo] {
        let checker = RollOut::new(plan).checker().spawn_dfs().join();
        let broken: Vec<_> = checker.discoveries().into_keys().collect();
        assert!(broken.contains(&EVERY_NODE_ANSWERS), "{plan:?}: every node knows each version");
        // Waiting is all that it costs: nothing runs twice, nobody gets another's answer.
        assert!(broken.iter().all(|name| [EVERY_NODE_ANSWERS, BOTH_STAND].contains(name)), "{plan:?}: {broken:?}");
    }
}

const EVERY_NODE_ANSWERS: &str = "every node of the fleet answers a retry";
const FIRST_AMOUNT: u64 = 10;
const OTHER_AMOUNT: u64 = 11;
const BOTH_STAND: &str = "a record of each version stands";

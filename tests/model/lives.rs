//! What the model found of keys that have a second life, told by the shipped functions alone.

use std::time::{Duration, SystemTime};

use idem_core::decide::{Decision, decide_lost};
use idem_core::store::{End, Finish, NewCall, NewClaim, Seen, Step, TakeOver};
use idem_core::{CallClass, DownstreamKey, Ownership, Record, transition};

use crate::config::{Config, Kind};
use crate::rig::Rig;
use crate::world::{TICK, at, token};

fn insert(rig: &Rig, command: usize, owner: u8, now: SystemTime) -> Record {
    let new =
        NewClaim { scope: rig.scope.clone(), hash: rig.hashes[command], owner: token(owner), lease: rig.rules.lease };
    transition::insert(&new, now)
}

fn a_step(call: Option<&str>) -> Step {
    let open = call.map(|name| NewCall {
        name: name.to_owned(),
        class: CallClass::QueryOnly { quiescence: TICK },
        key: DownstreamKey::from_stored(name.to_owned()),
    });
    Step { closed: Vec::new(), open, resource: None, checkpoint: None, lease: TICK }
}

/// Both records have fence 1, revision 2, one hash and one status; the second one has a call that the decision did not
/// see. A take-over that took it would make that call again.
#[test]
fn a_take_over_that_was_decided_on_a_keys_first_life_does_not_touch_its_second() {
    let rig = Rig::new(Config::new("lives", &[Kind::Answers]));
    let mut first = insert(&rig, 0, 1, at(0));
    let owner = first.ownership();
    assert!(transition::step(&mut first, &owner, &a_step(None), at(0)));
    let take = TakeOver { seen: Seen::of(&first), owner: token(3), lease: TICK };

    let mut second = insert(&rig, 0, 2, at(10));
    let owner = second.ownership();
    assert!(transition::step(&mut second, &owner, &a_step(Some("charge")), at(10)));
    assert_eq!((second.fence, second.revision, second.hash), (first.fence, first.revision, first.hash));
    let before = second.clone();
    assert!(!transition::take_over(&mut second, &take, at(20)));
    assert_eq!(second, before);
    assert!(transition::take_over(&mut first, &take, at(20)));
}

/// An attempt whose record is gone, and whose key another command has used since.
#[test]
fn the_client_of_an_attempt_that_lost_its_record_does_not_get_another_commands_answer() {
    let rig = Rig::new(Config::new("lives", &[]));
    let first = insert(&rig, 0, 1, at(0));
    let mut second = insert(&rig, 1, 2, at(10));
    let owner: Ownership = second.ownership();
    let response = rig.response(&second, 201);
    let finish =
        Finish { closed: Vec::new(), resource: None, end: End::Completed { response, keep: rig.rules.keep() } };
    assert!(transition::finish(&mut second, &owner, &finish, at(10)));

    assert!(matches!(decide_lost(&second, first.hash, at(10), &rig.rules), Decision::InProgress { retry_after }
        if retry_after > Duration::ZERO));
    assert_eq!(decide_lost(&second, second.hash, at(10), &rig.rules), Decision::Replay);
}

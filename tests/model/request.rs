//! A request: it claims, decides, and writes what it decided in a step of its own.

use std::sync::Arc;

use idem_core::decide::{Decision, Tend, decide, tend};
use idem_core::store::{Seen, TakeOver, Tended};
use idem_core::{Record, Status, transition};

use crate::mutations::Mutation;
use crate::rig::{Reached, Rig, taken};
use crate::world::{Ask, CALLS, NOBODY, Slot, WORKER, World, Write, at};

impl Rig {
    /// T1, or what the record that is there says. `unheard`: the insert is written, and its answer lost.
    pub(crate) fn claim(&self, world: &mut World, slot: usize, unheard: bool) -> bool {
        let Slot::Arrived { client, token, asked } = world.slots[slot] else { return false };
        let Some(row) = world.row.clone() else {
            if self.config.is(Mutation::CheckThenInsert) {
                world.slots[slot] = Slot::Inserting { client };
                return !unheard;
            }
            self.insert(world, client);
            self.own(world, slot, client, asked, unheard);
            return true;
        };
        if unheard {
            return false;
        }
        let is_own = token.is_some_and(|token| row.owner == crate::world::token(token));
        if is_own && matches!(row.status, Status::InProgress { .. }) {
            world.slots[slot] = Slot::Running(Arc::new(self.run(client, &row)));
            return true;
        }
        self.decide(world, slot, client, &row, asked);
        true
    }

    /// The blind write of a mutation that looked first.
    pub(crate) fn insert_blindly(&self, world: &mut World, slot: usize) -> bool {
        let Slot::Inserting { client } = world.slots[slot] else { return false };
        let before = world.told;
        self.insert(world, client);
        if before.lives > 0 {
            world.told = before;
        }
        self.own(world, slot, client, false, false);
        true
    }

    fn own(&self, world: &mut World, slot: usize, client: u8, asked: bool, unheard: bool) {
        let row = world.row.clone().expect("it was just written");
        world.slots[slot] = match unheard {
            true => Slot::Arrived { client, token: Some(world.owners), asked },
            false => Slot::Running(Arc::new(self.run(client, &row))),
        };
    }

    fn decide(&self, world: &mut World, slot: usize, client: u8, row: &Arc<Record>, asked: bool) {
        let decision = decide(row, self.verdict(client, row), at(world.now), &self.rules);
        let write = match decision {
            Decision::TakeOver if self.config.is(Mutation::NoTakeOver) => None,
            Decision::TakeOver => Some(Write::TakeOver),
            Decision::Strand if self.config.is(Mutation::RerunUnknown) => Some(Write::TakeOver),
            Decision::Strand => Some(Write::Strand),
            Decision::Ask if !asked && row.open_calls().any(|call| self.askable(&call.name)) => Some(Write::Ask),
            _ => None,
        };
        world.slots[slot] = match write {
            Some(write) => Slot::Decided { client, seen: Arc::clone(row), write },
            None => {
                self.answer(world, client, row, decision);
                Slot::Free
            }
        };
    }

    /// The write that a request or a worker has decided on, if the record still stands as it was seen.
    pub(crate) fn write(&self, world: &mut World, slot: usize, unheard: bool) -> bool {
        let Slot::Decided { client, seen, write } = world.slots[slot].clone() else { return false };
        let now = at(world.now);
        let mut guard = Seen::of(&seen);
        if self.config.is(Mutation::RevisionNotSeen)
            && let Some(row) = &world.row
        {
            guard.revision = row.revision;
        }
        let token = crate::world::token(world.owners + 1);
        let lease = if write == Write::TakeOver { self.rules.lease } else { self.rules.ask_lease };
        let take = TakeOver { seen: guard.clone(), owner: token, lease };
        let written = world.row.as_mut().is_some_and(|row| {
            // Looked at in a copy: a refused write leaves no trace of having been tried.
            let mut record = Record::clone(row);
            let written = match write {
                Write::TakeOver => transition::take_over(&mut record, &take, now),
                Write::Ask | Write::Tend(Tend::Ask) => transition::take_to_ask(&mut record, &take, now),
                Write::Strand => {
                    transition::tend(&mut record, &guard, &Tended::Stranded { ask_in: self.rules.backoff }, now)
                }
                Write::Tend(to) => self.tended(to).is_some_and(|to| transition::tend(&mut record, &guard, &to, now)),
            };
            if written {
                *row = Arc::new(record);
            }
            written
        });
        if !written {
            if unheard {
                return false;
            }
            if write == Write::TakeOver {
                self.reach(Reached::TakeOverRefused);
            }
            self.changed(world, slot, client);
            return true;
        }
        match write {
            Write::TakeOver => {
                self.next_owner(world);
                self.reach(match seen.status {
                    Status::InProgress { .. } => Reached::TakeOver,
                    _ => Reached::Retry,
                });
                world.slots[slot] = match unheard {
                    true => Slot::Arrived { client, token: Some(world.owners), asked: false },
                    false => Slot::Running(Arc::new(self.run(client, &taken(&seen, token)))),
                };
                return true;
            }
            Write::Ask | Write::Tend(Tend::Ask) => {
                self.next_owner(world);
                self.reach(Reached::Ask);
                let record = Record {
                    fence: seen.fence.next(),
                    owner: token,
                    ask_attempts: seen.ask_attempts + 1,
                    ..Record::clone(&seen)
                };
                let ask = Ask { client, record, now: world.now, found: [None; CALLS] };
                world.slots[slot] = Slot::Asking(Arc::new(ask));
            }
            Write::Strand => self.reach(Reached::Strand),
            Write::Tend(Tend::Strand) => self.reach(Reached::Strand),
            Write::Tend(Tend::Release) => self.reach(Reached::Release),
            Write::Tend(_) => self.reach(Reached::Park),
        }
        if !matches!(world.slots[slot], Slot::Asking(_)) {
            world.slots[slot] = Slot::Free;
        }
        !unheard
    }

    /// The record was not as it was seen: a request decides again on what is there, a worker leaves it to its next round.
    fn changed(&self, world: &mut World, slot: usize, client: u8) {
        match world.row.clone() {
            Some(row) if client != NOBODY => self.decide(world, slot, client, &row, false),
            _ => world.slots[slot] = Slot::Free,
        }
    }

    fn tended(&self, to: Tend) -> Option<Tended> {
        match to {
            Tend::Release => Some(Tended::Released { retry_in: self.rules.backoff, keep: self.rules.keep() }),
            Tend::Strand => Some(Tended::Stranded { ask_in: std::time::Duration::ZERO }),
            Tend::Park => Some(Tended::Parked { ask_in: self.rules.ask_parked }),
            Tend::Leave | Tend::Ask => None,
        }
    }

    /// A worker reads the record and decides. False where there is nothing to do.
    pub(crate) fn work(&self, world: &mut World) -> bool {
        let Some(row) = world.row.clone() else { return false };
        let now = at(world.now);
        if world.slots[WORKER] != Slot::Free || !transition::is_due(&row, self.rules.grace, now) {
            return false;
        }
        if self.config.is(Mutation::NoWorkerForAbandoned) && matches!(row.status, Status::InProgress { .. }) {
            return false;
        }
        let to = tend(&row, &|name| self.askable(name), now, &self.rules);
        if to == Tend::Leave {
            return false;
        }
        world.slots[WORKER] = Slot::Decided { client: NOBODY, seen: row, write: Write::Tend(to) };
        true
    }
}

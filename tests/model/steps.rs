//! What may happen next, to the checker.

use std::sync::Arc;

use idem_core::transition::{self, Cleaned};
use idem_core::{Record, Status};
use stateright::{Model, Property};

use crate::config::Config;
use crate::mutations::Mutation;
use crate::owner::How;
use crate::properties;
use crate::rig::{Reached, Rig};
use crate::world::{CLIENTS, FLIGHTS, SLOTS, Slot, WORKER, World, at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// A client sends its command, for the first time or again.
    Request(u8),
    /// The next step of a process.
    Go(u8, How),
    Crash(u8),
    Beat(u8),
    /// A process stops waiting for its call.
    StopWaiting(u8),
    Arrive {
        flight: u8,
        declined: bool,
        heard: bool,
    },
    Lose(u8),
    Work,
    Sweep,
    Replicate,
    FailOver,
}

/// A configuration to be explored, and a second rig that looks ahead from its states.
pub(crate) struct Explored {
    pub(crate) rig: Rig,
    pub(crate) healer: Rig,
}

impl Explored {
    pub(crate) fn new(config: Config) -> Self {
        Self { rig: Rig::new(config.clone()), healer: Rig::new(config) }
    }
}

impl Model for Explored {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.rig.start()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.rig.may_happen(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.rig.happens(&mut next, action).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Rig {
    fn may_happen(&self, world: &World, actions: &mut Vec<Action>) {
        let faults = world.faults > 0;
        if world.now < self.config.until {
            actions.push(Action::Tick);
        }
        for client in 0..CLIENTS as u8 {
            let who = &world.clients[usize::from(client)];
            if who.requests > 0 && who.got.is_none() && self.free_slot(world).is_some() {
                actions.push(Action::Request(client));
            }
        }
        for slot in 0..SLOTS as u8 {
            if world.slots[usize::from(slot)] == Slot::Free {
                continue;
            }
            actions.push(Action::Go(slot, How::Well));
            actions.push(Action::Beat(slot));
            actions.push(Action::StopWaiting(slot));
            if faults {
                actions.extend([Action::Go(slot, How::Unheard), Action::Go(slot, How::Fails), Action::Crash(slot)]);
            }
        }
        for flight in 0..FLIGHTS as u8 {
            if world.flights[usize::from(flight)].is_none() {
                continue;
            }
            actions.push(Action::Arrive { flight, declined: false, heard: true });
            if self.config.declines {
                actions.push(Action::Arrive { flight, declined: true, heard: true });
            }
            if faults {
                actions.extend([Action::Arrive { flight, declined: false, heard: false }, Action::Lose(flight)]);
            }
        }
        actions.push(Action::Work);
        if self.config.sweeps {
            actions.push(Action::Sweep);
        }
        if self.config.fails_over && !world.told.failed_over {
            actions.push(Action::Replicate);
            if faults {
                actions.push(Action::FailOver);
            }
        }
    }

    /// False where it cannot happen, or changes nothing; the world is of no use then.
    pub(crate) fn happens(&self, world: &mut World, action: Action) -> bool {
        match action {
            Action::Tick => self.tick(world),
            Action::Request(client) => self.request(world, client),
            Action::Go(slot, how) => {
                let slot = usize::from(slot);
                let went = match &world.slots[slot] {
                    Slot::Free => false,
                    Slot::Arrived { .. } if how == How::Fails => false,
                    Slot::Arrived { .. } => self.claim(world, slot, how == How::Unheard),
                    Slot::Inserting { .. } => how == How::Well && self.insert_blindly(world, slot),
                    Slot::Decided { .. } if how == How::Fails => false,
                    Slot::Decided { .. } => self.write(world, slot, how == How::Unheard),
                    Slot::Running(_) => self.owner_step(world, slot, how),
                    Slot::Asking(_) => self.ask_step(world, slot, how),
                };
                went && (how == How::Well || spend(world))
            }
            Action::Crash(slot) => {
                world.slots[usize::from(slot)] = Slot::Free;
                spend(world)
            }
            Action::Beat(slot) => self.beat(world, usize::from(slot)),
            Action::StopWaiting(slot) => match self.stop_waiting(world, usize::from(slot)) {
                Some(true) => spend(world),
                Some(false) => true,
                None => false,
            },
            Action::Arrive { flight, declined, heard } => {
                self.arrive(world, usize::from(flight), declined, heard) && (heard || spend(world))
            }
            Action::Lose(flight) => {
                world.flights[usize::from(flight)] = None;
                world.flights.sort_unstable();
                spend(world)
            }
            Action::Work => self.work(world),
            Action::Sweep => self.sweep(world),
            Action::Replicate => {
                let now = (world.row.clone(), world.business);
                let is_new = world.standby != now;
                world.standby = now;
                is_new
            }
            Action::FailOver => {
                (world.row, world.business) = world.standby.clone();
                world.standby = (None, None);
                world.told.failed_over = true;
                world.told.body = None;
                self.reach(Reached::FailedOver);
                spend(world)
            }
        }
    }

    fn tick(&self, world: &mut World) -> bool {
        world.now += 1;
        for flight in &mut world.flights {
            *flight = flight.filter(|flight| world.now <= flight.until);
        }
        world.flights.sort_unstable();
        true
    }

    fn free_slot(&self, world: &World) -> Option<usize> {
        (0..usize::from(self.config.slots)).find(|slot| *slot != WORKER && world.slots[*slot] == Slot::Free)
    }

    pub(crate) fn request(&self, world: &mut World, client: u8) -> bool {
        let Some(slot) = self.free_slot(world) else { return false };
        let requests = &mut world.clients[usize::from(client)].requests;
        *requests = requests.saturating_sub(1);
        world.slots[slot] = Slot::Arrived { client, token: None, asked: false };
        true
    }

    fn sweep(&self, world: &mut World) -> bool {
        let Some(row) = world.row.clone() else { return false };
        let now = at(world.now);
        if self.config.is(Mutation::CleanupByAge) && row.created_at + self.rules.window <= now {
            world.row = None;
            return true;
        }
        let mut record = Record::clone(&row);
        match transition::sweep(&mut record, false, now) {
            Cleaned::Kept => return false,
            Cleaned::Purged => {
                self.reach(Reached::Purged);
                world.row = None;
            }
            Cleaned::Body | Cleaned::Expired => {
                if matches!(record.status, Status::Expired { .. }) {
                    self.reach(Reached::Expired);
                }
                world.row = Some(Arc::new(record));
            }
        }
        true
    }
}

/// One thing less may go wrong; false where nothing may any more.
fn spend(world: &mut World) -> bool {
    let left = world.faults.checked_sub(1);
    world.faults = left.unwrap_or_default();
    left.is_some()
}

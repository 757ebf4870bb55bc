//! What becomes of a state once nothing goes wrong any more: the promises that something will happen.
//!
//! Any state can lose all its processes at once, so looking ahead from the states in which nobody runs looks ahead from
//! all of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::owner::How;
use crate::rig::{Rig, is_settled};
use crate::steps::{Action, Explored};
use crate::world::{Client, FLIGHTS, SLOTS, Slot, Told, World};

impl Explored {
    /// Whether all ends well from here: `clients` come back until they have an answer, or nobody ever does.
    pub(crate) fn heals(&self, world: &World, clients: bool) -> bool {
        if world.slots.iter().any(|slot| *slot != Slot::Free) {
            return true;
        }
        let mut world = world.clone();
        world.faults = 0;
        world.told = Told { lives: world.told.lives, failed_over: true, ..Told::default() };
        for client in &mut world.clients {
            client.requests = 0;
            if !clients {
                *client = Client::default();
            }
        }
        let mut hasher = DefaultHasher::new();
        (&world, clients).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = SEEN.with_borrow(|seen| seen.get(&key).copied()) {
            return known;
        }
        let heals = self.healer.heals(world, clients);
        SEEN.with_borrow_mut(|seen| seen.insert(key, heals));
        heals
    }
}

thread_local! {
    /// Many states differ in what does not matter here. The checker's threads end with their exploration.
    static SEEN: RefCell<HashMap<u64, bool>> = RefCell::default();
}

impl Rig {
    fn heals(&self, mut world: World, clients: bool) -> bool {
        for _ in 0..if clients { PATIENCE } else { ROUNDS } {
            self.settle_down(&mut world);
            if clients {
                for client in 0..self.config.clients.len() as u8 {
                    if world.clients[usize::from(client)].got.is_none() {
                        self.happens(&mut world, Action::Request(client));
                        self.settle_down(&mut world);
                    }
                }
                let waits = |(client, _): (usize, _)| world.clients[client].got.is_none();
                if !self.config.clients.iter().enumerate().any(waits) {
                    return true;
                }
            }
            while self.happens(&mut world, Action::Work) {
                self.settle_down(&mut world);
            }
            if !clients && is_settled(world.row.as_ref()) {
                return true;
            }
            self.happens(&mut world, Action::Tick);
        }
        false
    }

    /// Whoever runs runs to the end.
    fn settle_down(&self, world: &mut World) {
        let steps = |world: &mut World, action| {
            let mut next = world.clone();
            let stepped = self.happens(&mut next, action);
            if stepped {
                *world = next;
            }
            stepped
        };
        loop {
            let arrives = |flight| Action::Arrive { flight, declined: false, heard: true };
            let is_step = (0..FLIGHTS as u8).any(|flight| steps(world, arrives(flight)))
                || (0..SLOTS as u8).any(|slot| steps(world, Action::Go(slot, How::Well)))
                || (0..SLOTS as u8).any(|slot| steps(world, Action::StopWaiting(slot)));
            if !is_step {
                return;
            }
        }
    }
}

/// More than any wait of the rules takes, in ticks.
const ROUNDS: u8 = 24;
/// Less than the window: that it is over is no answer to somebody who asked all the time.
const PATIENCE: u8 = 10;

//! The providers: calls arrive, late or never, and questions are answered truly.

use std::sync::Arc;

use idem_core::CallState;

use crate::config::{Kind, NEVER};
use crate::mutations::Mutation;
use crate::rig::{Reached, Rig, applied, rejected};
use crate::world::{Known, Next, Run, Slot, World};

impl Rig {
    /// A call arrives. `heard`: its process gets the answer, if it waits for it.
    pub(crate) fn arrive(&self, world: &mut World, flight: usize, declined: bool, heard: bool) -> bool {
        let Some(call) = world.flights[flight].take() else { return false };
        world.flights.sort_unstable();
        let at_call = usize::from(call.call);
        let kind = self.config.calls[at_call];
        let now = world.now;
        let provider = &mut world.providers[at_call];
        let known = &mut provider.known[usize::from(call.key)];
        let remembered = known.filter(|known| kind.dedupes() && !self.is_forgotten(known.at, now));
        let outcome = match remembered {
            Some(_) if declined => return false,
            Some(before) if before.command != call.command => None,
            Some(before) => Some(if before.rejected { rejected() } else { applied() }),
            None => {
                *known = Some(Known { command: call.command, at: now, rejected: declined });
                if declined {
                    Some(rejected())
                } else {
                    let effects = &mut provider.effects[usize::from(call.command)];
                    *effects = (*effects + 1).min(3);
                    Some(applied())
                }
            }
        };
        let slot = usize::from(call.slot);
        match &world.slots[slot] {
            Slot::Running(run) if run.next == Next::Wait(call.call) && run.record.owner.as_bytes()[0] == call.token => {
                let mut run = Run::clone(run);
                self.hear(&mut run, call.call, outcome.filter(|_| heard));
                world.slots[slot] = Slot::Running(Arc::new(run));
                true
            }
            _ => {
                self.reach(Reached::LateArrival);
                heard
            }
        }
    }

    /// A process stops waiting for its call. Nothing went wrong where the call is not under way any more.
    pub(crate) fn stop_waiting(&self, world: &mut World, slot: usize) -> Option<bool> {
        let Slot::Running(run) = &world.slots[slot] else { return None };
        let Next::Wait(call) = run.next else { return None };
        let token = run.record.owner.as_bytes()[0];
        let is_under_way = world.flights.iter().flatten().any(|flight| flight.token == token && flight.call == call);
        let mut run = Run::clone(run);
        self.hear(&mut run, call, None);
        world.slots[slot] = Slot::Running(Arc::new(run));
        Some(is_under_way)
    }

    /// What the provider says of a call when it is asked.
    pub(crate) fn says(&self, world: &World, call: usize, command: u8) -> crate::world::Said {
        let kind = self.config.calls[call];
        if self.config.is(Mutation::UnknownIsApplied) {
            return crate::world::Said::Applied;
        }
        // One key, whoever asks; under the mutation the record's last one counts.
        let known = world.providers[call].known.iter().rev().flatten().next();
        match known {
            Some(known) if kind != Kind::Answers && self.is_forgotten(known.at, world.now) => {
                self.reach(Reached::Forgotten);
                crate::world::Said::NotApplied
            }
            // Another command's call under this key is no answer.
            Some(known) if known.command != command => crate::world::Said::StillUnknown,
            Some(known) if known.rejected => crate::world::Said::Rejected,
            Some(_) => crate::world::Said::Applied,
            None => crate::world::Said::NotApplied,
        }
    }

    fn is_forgotten(&self, since: u8, now: u8) -> bool {
        self.config.retention != NEVER && since + self.config.retention <= now
    }
}

/// What a provider said of a call, as the record keeps it.
pub(crate) fn finding(said: crate::world::Said) -> idem_core::decide::Finding {
    use idem_core::decide::Finding;

    use crate::world::Said;
    let outcome = |state| match state {
        CallState::Applied(outcome) | CallState::Rejected(outcome) => outcome,
        CallState::Open | CallState::Withdrawn => Vec::new(),
    };
    match said {
        Said::Applied => Finding::Applied(outcome(applied())),
        Said::Rejected => Finding::Rejected(outcome(rejected())),
        Said::NotApplied => Finding::NotApplied,
        Said::StillUnknown => Finding::StillUnknown,
    }
}

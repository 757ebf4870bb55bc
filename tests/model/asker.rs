//! Asking the providers of an unknown record, and writing what they said.

use std::sync::Arc;

use idem_core::decide::{Asked, Becomes, Concluded, Ended, asked, becomes, concluded};
use idem_core::store::{Answered, AnsweredEnd, ClosedCall, End};
use idem_core::{CallState, Record, transition};

use crate::mutations::Mutation;
use crate::owner::How;
use crate::provider::finding;
use crate::rig::{Reached, Rig, index};
use crate::world::{Ask, NOBODY, Said, Slot, World, at};

impl Rig {
    /// The next question, or the write of what all of them came to.
    pub(crate) fn ask_step(&self, world: &mut World, slot: usize, how: How) -> bool {
        let Slot::Asking(ask) = &world.slots[slot] else { return false };
        let mut ask = Ask::clone(ask);
        let open = ask.record.open_calls().map(|call| index(&call.name)).find(|call| ask.found[*call].is_none());
        match (open, how) {
            (Some(call), How::Well) => {
                let name = crate::rig::NAMES[call];
                ask.found[call] = Some(if self.askable(name) {
                    self.says(world, call, self.command_in(&ask.record))
                } else {
                    Said::StillUnknown
                });
            }
            (Some(call), How::Fails) => ask.found[call] = Some(Said::StillUnknown),
            (None, How::Well) => return self.conclude(world, slot, ask),
            (_, How::Unheard) | (None, How::Fails) => return false,
        }
        world.slots[slot] = Slot::Asking(Arc::new(ask));
        true
    }

    /// T11 to T13.
    fn conclude(&self, world: &mut World, slot: usize, ask: Ask) -> bool {
        let Ask { client, mut record, now, found } = ask;
        let (taken_at, rules) = (at(now), &self.rules);
        let owner = record.ownership();
        let mut closed = Vec::new();
        let (mut again, mut give_up) = (rules.ask_cap, false);
        let ask_attempts = record.ask_attempts;
        for call in record.calls.iter_mut().filter(|call| call.is_open()) {
            let said = found[index(&call.name)].expect("each was asked about");
            match asked(call, finding(said), ask_attempts, taken_at, rules) {
                Asked::Closed(state) => {
                    call.state = state.clone();
                    closed.push(ClosedCall { name: call.name.clone(), state });
                }
                Asked::Again(span) => again = again.min(span),
                Asked::GiveUp => give_up = true,
            }
        }
        let names: Vec<_> = closed.iter().map(|call| call.name.clone()).collect();
        let mut settles = false;
        let resume = End::FailedRetryable { retry_in: std::time::Duration::ZERO, keep: rules.keep() };
        let end = match concluded(&record.calls, names.iter().map(String::as_str), taken_at, rules) {
            Concluded::StillUnknown => {
                let ask_in = if give_up { rules.ask_parked } else { again };
                AnsweredEnd::StillUnknown { ask_in, park: give_up }
            }
            Concluded::Known(call) if self.askable(&call.name) => {
                let end = self.settlement(&record, &call.state, resume);
                settles = matches!(end, End::Completed { .. });
                AnsweredEnd::Ended(end)
            }
            Concluded::Known(_) | Concluded::Resume => AnsweredEnd::Ended(resume),
        };
        let withdrawn = closed.iter().any(|call| call.state == CallState::Withdrawn);
        let reached = match &end {
            AnsweredEnd::Ended(End::Completed { .. }) => Reached::Settled,
            AnsweredEnd::Ended(End::FailedReplayable { .. }) => Reached::SettledRefusal,
            AnsweredEnd::Ended(_) if withdrawn => Reached::Withdrawn,
            AnsweredEnd::Ended(_) => Reached::Resumed,
            AnsweredEnd::StillUnknown { .. } => Reached::StillUnknown,
        };
        let answered = Answered { closed, resource: None, end };
        let written = world
            .row
            .as_mut()
            .is_some_and(|row| transition::answer(Arc::make_mut(row), &owner, &answered, at(world.now)));
        if written {
            self.reach(reached);
        }
        // One transaction with the record.
        if written && settles && !self.config.is(Mutation::SettledWithoutRows) {
            world.business = world.business.or(Some(self.command_in(&record)));
        }
        world.slots[slot] = match client {
            NOBODY => Slot::Free,
            client => Slot::Arrived { client, token: None, asked: true },
        };
        true
    }

    /// What the application makes of a record whose calls are all known.
    fn settlement(&self, record: &Record, state: &CallState, resume: End) -> End {
        let is_refused = matches!(state, CallState::Rejected(_));
        let made = record.calls.iter().filter(|call| matches!(call.state, CallState::Applied(_))).count();
        if !is_refused && made < self.config.calls.len() {
            return resume;
        }
        let status = if is_refused { 402 } else { 201 };
        let (response, keep) = (self.response(record, status), self.rules.keep());
        match becomes(Ended::Replied(status), &[], record.created_at, &self.rules) {
            Becomes::Completed => End::Completed { response, keep },
            Becomes::FailedReplayable => End::FailedReplayable { response, keep },
            Becomes::FailedRetryable | Becomes::Unknown => resume,
        }
    }
}

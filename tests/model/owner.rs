//! An attempt: it announces, calls, and writes how it ended.

use std::sync::Arc;

use idem_core::decide::{Becomes, Ended, becomes, decide_lost};
use idem_core::store::{End, Finish, Step};
use idem_core::{CallRecord, CallState, Record, Status, transition};

use crate::config::DELAY;
use crate::mutations::Mutation;
use crate::rig::{NAMES, Reached, Rig, index};
use crate::world::{FLIGHTS, Flight, Next, Run, Slot, World, at};

/// How the next step of a process goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum How {
    Well,
    /// It is written, and the process does not hear of it.
    Unheard,
    /// It does not happen: the write does not arrive, the call never leaves, the work breaks.
    Fails,
}

impl Rig {
    /// The next step of an attempt. False where there is none of that kind.
    pub(crate) fn owner_step(&self, world: &mut World, slot: usize, how: How) -> bool {
        let Slot::Running(run) = &world.slots[slot] else { return false };
        let mut run = Run::clone(run);
        match run.next {
            Next::Look if how == How::Well => run.next = self.look(world, &run),
            Next::Announce(call) => return self.announce(world, slot, run, call, how),
            Next::Send(call) => return self.send(world, slot, run, call, how),
            // The work breaks after its calls, or its process stops waiting.
            Next::Finish(Ended::Replied(_)) if how == How::Fails => run.next = Next::Finish(Ended::Broke),
            Next::Finish(ended) if how != How::Fails => return self.finish(world, slot, &run, ended, how),
            _ => return false,
        }
        world.slots[slot] = Slot::Running(Arc::new(run));
        true
    }

    /// The application's row under the derived id: insert or resume.
    fn look(&self, world: &World, run: &Run) -> Next {
        match world.business {
            None => self.after(&run.record, None, false),
            Some(command) if command == self.command_in(&run.record) => Next::Finish(Ended::Replied(201)),
            Some(_) => {
                self.reach(Reached::BusinessRowOfAnother);
                Next::Finish(Ended::Replied(409))
            }
        }
    }

    /// What follows a call: the next one that is not known yet, or the end.
    pub(crate) fn after(&self, record: &Record, call: Option<u8>, broken: bool) -> Next {
        let from = call.map_or(0, |call| call + 1);
        for call in from..self.calls() {
            match record.calls.iter().find(|known| index(&known.name) == usize::from(call)).map(|known| &known.state) {
                Some(CallState::Applied(_)) => {}
                Some(CallState::Rejected(_)) => return Next::Finish(Ended::Refused),
                _ => return Next::Announce(call),
            }
        }
        Next::Finish(if broken { Ended::Broke } else { Ended::Replied(201) })
    }

    /// T3, as a claim makes it.
    fn announce(&self, world: &mut World, slot: usize, mut run: Run, call: u8, how: How) -> bool {
        let at_call = usize::from(call);
        let before = run.record.calls.iter().find(|known| index(&known.name) == at_call).cloned();
        let was_open = before.as_ref().is_some_and(CallRecord::is_open);
        let (new, _) = self.new_call(world, call);
        let step = Step {
            closed: self.closed(&run),
            open: Some(new.clone()),
            resource: None,
            checkpoint: None,
            lease: self.rules.lease,
        };
        let owner = run.record.ownership();
        let written = match how {
            How::Fails => false,
            _ if self.config.is(Mutation::NotAnnounced) => how == How::Well,
            _ => self.owner_writes(world, &owner, |record, owner, now| transition::step(record, owner, &step, now)),
        };
        if how == How::Unheard && !written {
            return false;
        }
        let opened_at = at(world.now);
        let opened = CallRecord { name: new.name, class: new.class, key: new.key, state: CallState::Open, opened_at };
        run.next = match (how, before) {
            (How::Well, _) if !written => Next::Finish(Ended::Broke),
            (How::Well, Some(open)) if was_open => {
                run.unwritten = Default::default();
                let may_repeat = open.may_repeat(opened_at, self.rules.margin());
                if may_repeat || self.config.is(Mutation::RerunUnknown) {
                    run.announced_at = world.now;
                    Next::Send(call)
                } else {
                    Next::Finish(Ended::Broke)
                }
            }
            (How::Well, _) => {
                run.unwritten = Default::default();
                run.record.calls.retain(|known| index(&known.name) != at_call);
                run.record.calls.push(opened);
                run.record.calls.sort_by_key(|known| index(&known.name));
                run.first[at_call] = true;
                run.announced_at = world.now;
                Next::Send(call)
            }
            // Nobody knows whether it was announced. Nothing left, so it is taken back, unless it was open before.
            (_, Some(open)) if open.is_open() => Next::Finish(Ended::Broke),
            (_, before) => {
                if before.is_some() {
                    self.close(&mut run, call, CallState::Withdrawn);
                } else {
                    // The attempt knows no such call, and says all the same that it was withdrawn.
                    run.record.calls.push(CallRecord { state: CallState::Withdrawn, ..opened });
                    run.record.calls.sort_by_key(|known| index(&known.name));
                    run.unwritten[at_call] = true;
                }
                Next::Finish(Ended::Broke)
            }
        };
        world.slots[slot] = Slot::Running(Arc::new(run));
        true
    }

    fn send(&self, world: &mut World, slot: usize, mut run: Run, call: u8, how: How) -> bool {
        match how {
            // Too late to arrive in time: its client has given up.
            How::Well if world.now > run.announced_at + DELAY => run.next = Next::Finish(Ended::Broke),
            How::Well => {
                let Some(free) = (0..FLIGHTS).find(|at| world.flights[*at].is_none()) else { return false };
                let (_, key) = self.new_call(world, call);
                world.flights[free] = Some(Flight {
                    slot: u8::try_from(slot).expect("there are few"),
                    token: run.record.owner.as_bytes()[0],
                    call,
                    key,
                    command: self.command_in(&run.record),
                    until: run.announced_at + DELAY,
                });
                world.flights.sort_unstable();
                world.told.sent[usize::from(call)] += 1;
                run.next = Next::Wait(call);
            }
            How::Fails => {
                if run.first[usize::from(call)] {
                    self.close(&mut run, call, CallState::Withdrawn);
                }
                run.next = Next::Finish(Ended::Broke);
            }
            How::Unheard => return false,
        }
        world.slots[slot] = Slot::Running(Arc::new(run));
        true
    }

    /// The attempt learns what became of a call; the next write says so.
    pub(crate) fn close(&self, run: &mut Run, call: u8, state: CallState) {
        let call = usize::from(call);
        if let Some(known) = run.record.calls.iter_mut().find(|known| known.name == NAMES[call]) {
            known.state = state;
            run.unwritten[call] = true;
        }
    }

    /// The answer of a call came, or never will.
    pub(crate) fn hear(&self, run: &mut Run, call: u8, outcome: Option<CallState>) {
        match outcome {
            Some(state) => {
                self.close(run, call, state);
                run.next = self.after(&run.record, call.checked_sub(1), run.broken);
            }
            None if self.config.goes_on && call + 1 < self.calls() => {
                run.broken = true;
                run.next = self.after(&run.record, Some(call), true);
            }
            None => run.next = Next::Finish(Ended::Broke),
        }
    }

    /// T4 to T7. The application's row is written with the end.
    fn finish(&self, world: &mut World, slot: usize, run: &Run, ended: Ended, how: How) -> bool {
        let (record, rules) = (&run.record, &self.rules);
        let response = |status| self.response(record, status);
        let status = match ended {
            Ended::Replied(status) => status,
            _ => 422,
        };
        let end = match becomes(ended, &record.calls, at(world.now), rules) {
            Becomes::Completed => End::Completed { response: response(status), keep: rules.keep() },
            Becomes::FailedReplayable => End::FailedReplayable { response: response(status), keep: rules.keep() },
            Becomes::FailedRetryable => {
                End::FailedRetryable { retry_in: rules.backoff_after(record.attempts), keep: rules.keep() }
            }
            Becomes::Unknown => End::Unknown { ask_in: rules.backoff },
        };
        let finish = Finish { closed: self.closed(run), resource: None, end };
        let owner = record.ownership();
        let written =
            self.owner_writes(world, &owner, |record, owner, now| transition::finish(record, owner, &finish, now));
        if written && matches!(finish.end, End::Completed { .. }) {
            world.business = world.business.or(Some(self.command_in(record)));
        }
        if how == How::Unheard {
            return written;
        }
        let row = world.row.clone();
        let is_own = |row: &Arc<Record>| row.ownership() == owner && row.status.name() == finish.end.status();
        if written || row.as_ref().is_some_and(is_own) {
            match &finish.end {
                End::Completed { response, .. } | End::FailedReplayable { response, .. } => {
                    self.replay(world, run.client, response);
                }
                End::FailedRetryable { .. } | End::Unknown { .. } => {}
            }
        } else if let Some(row) = row {
            let decision = decide_lost(&row, record.hash, at(world.now), rules);
            self.answer(world, run.client, &row, decision);
        }
        world.slots[slot] = Slot::Free;
        true
    }

    /// T2.
    pub(crate) fn beat(&self, world: &mut World, slot: usize) -> bool {
        let Slot::Running(run) = &world.slots[slot] else { return false };
        let owner = run.record.ownership();
        let (now, lease) = (at(world.now), self.rules.lease);
        let renewed = Status::InProgress { locked_until: now + lease };
        // A beat that moves nothing only counts revisions.
        if world.row.as_ref().is_none_or(|row| row.status == renewed || row.owner != owner.owner) {
            return false;
        }
        self.owner_writes(world, &owner, |record, owner, now| transition::renew(record, owner, lease, now))
    }
}

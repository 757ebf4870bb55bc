//! The harness: what idem is told, and how answers reach the clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use idem_core::decide::Decision;
use idem_core::store::{ClosedCall, NewCall};
use idem_core::{
    CallState, CommandHash, DownstreamKey, Fence, IdempotentCommand, Ownership, Record, Revision, Rules, Scope, Status,
    StoredResponse, Tenant, Verdict, resource_id, transition,
};

use crate::config::Config;
use crate::mutations::Mutation;
use crate::world::{CALLS, Client, Got, NOBODY, Run, Slot, World, at, token};

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    amount: u64,
}

/// What the checker needs besides a state.
pub(crate) struct Rig {
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) scope: Scope,
    pub(crate) hashes: [CommandHash; 2],
    /// By the client's command and the record's.
    verdicts: [[Verdict; 2]; 2],
    /// Each call with the key that it is made with, and with the one that a mutation takes.
    keys: [[NewCall; 2]; CALLS],
    /// Which steps were taken anywhere.
    reached: Arc<AtomicU64>,
}

/// What has to happen somewhere, or a configuration shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    TakeOver,
    Retry,
    TakeOverRefused,
    LateWriteRefused,
    Strand,
    Release,
    Park,
    Ask,
    Settled,
    SettledRefusal,
    Resumed,
    Withdrawn,
    StillUnknown,
    Replay,
    Mismatch,
    Expired,
    Purged,
    LateArrival,
    Forgotten,
    FailedOver,
    BusinessRowOfAnother,
}

impl Rig {
    pub(crate) fn new(config: Config) -> Self {
        let commands = [Pay { amount: 10 }, Pay { amount: 11 }];
        let hashes = commands.each_ref().map(IdempotentCommand::command_hash);
        let verdicts = commands.each_ref().map(|command| hashes.each_ref().map(|hash| command.verdict(hash)));
        let tenant = Tenant::new("t").expect("it is one");
        let scope = Scope::new(tenant, Pay::OPERATION, "k".parse().expect("it is one"));
        let id = resource_id("model", &scope);
        let keys = std::array::from_fn(|call| {
            let name = NAMES[call];
            let class = config.calls.get(call).map_or(idem_core::CallClass::Neither, |kind| config.class(*kind));
            [&id, "of_another_row"].map(|id| NewCall {
                name: name.to_owned(),
                class,
                key: DownstreamKey::from_stored(format!("{name}_{id}")),
            })
        });
        Self { rules: config.rules(), config, scope, hashes, verdicts, keys, reached: Arc::default() }
    }

    pub(crate) fn reach(&self, what: Reached) {
        let bit = 1 << what as u64;
        if self.reached.load(Ordering::Relaxed) & bit == 0 {
            self.reached.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// A handle to what was reached, for when the checker has taken the rig.
    pub(crate) fn reached(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.reached)
    }

    pub(crate) fn start(&self) -> World {
        let mut clients = [Client::default(); 3];
        for (client, (_, requests)) in clients.iter_mut().zip(self.config.clients) {
            client.requests = *requests;
        }
        World {
            now: 0,
            faults: self.config.faults,
            row: None,
            business: None,
            standby: (None, None),
            providers: Default::default(),
            flights: Default::default(),
            slots: std::array::from_fn(|_| Slot::Free),
            clients,
            owners: 0,
            told: Default::default(),
        }
    }

    pub(crate) fn command_of(&self, client: u8) -> u8 {
        self.config.clients[usize::from(client)].0
    }

    pub(crate) fn command_in(&self, record: &Record) -> u8 {
        u8::from(record.hash == self.hashes[1])
    }

    pub(crate) fn verdict(&self, client: u8, record: &Record) -> Verdict {
        if self.config.is(Mutation::HashNotCompared) {
            return Verdict::Same;
        }
        self.verdicts[usize::from(self.command_of(client))][usize::from(self.command_in(record))]
    }

    /// The call as an attempt announces it, and the number of its key.
    pub(crate) fn new_call(&self, world: &World, call: u8) -> (NewCall, u8) {
        let key = u8::from(self.config.is(Mutation::KeyFromRowId) && world.told.lives > 1);
        (self.keys[usize::from(call)][usize::from(key)].clone(), key)
    }

    pub(crate) fn calls(&self) -> u8 {
        u8::try_from(self.config.calls.len()).expect("there are two at most")
    }

    pub(crate) fn askable(&self, name: &str) -> bool {
        let at = NAMES.iter().position(|known| *known == name);
        at.is_some_and(|at| self.config.calls[at].askable())
    }

    /// An attempt on a record that the store has just given it. Only what an attempt may know is kept of the record.
    pub(crate) fn run(&self, client: u8, record: &Record) -> Run {
        let record = Record {
            revision: Revision::FIRST,
            created_at: at(0),
            ask_attempts: 0,
            status: Status::InProgress { locked_until: at(0) },
            ..record.clone()
        };
        let next = if self.config.has_lives() { crate::world::Next::Look } else { self.after(&record, None, false) };
        Run { client, record, next, unwritten: [false; CALLS], first: [false; CALLS], announced_at: 0, broken: false }
    }

    /// The outcomes that an attempt has not written yet.
    pub(crate) fn closed(&self, run: &Run) -> Vec<ClosedCall> {
        let unwritten = |call: &&idem_core::CallRecord| run.unwritten[index(&call.name)];
        let closed = run.record.calls.iter().filter(unwritten);
        closed.map(|call| ClosedCall { name: call.name.clone(), state: call.state.clone() }).collect()
    }

    /// One write of an owner: the shipped guard decides, or what a mutation puts in its place.
    pub(crate) fn owner_writes(
        &self,
        world: &mut World,
        owner: &Ownership,
        write: impl FnOnce(&mut Record, &Ownership, SystemTime) -> bool,
    ) -> bool {
        let now = at(world.now);
        let Some(row) = &mut world.row else { return false };
        let is_live = matches!(&row.status, Status::InProgress { locked_until } if now < *locked_until);
        let unguarded = match self.config.mutation {
            Some(Mutation::NoFenceCheck) => true,
            Some(Mutation::LiveLeaseCheck) if !is_live => return false,
            Some(Mutation::LiveLeaseCheck) => true,
            _ => false,
        };
        let shown = if unguarded { row.ownership() } else { owner.clone() };
        let is_late = row.owner != owner.owner;
        let written = write(Arc::make_mut(row), &shown, now);
        if written && is_late {
            world.told.late_write = true;
        }
        if !written && is_late {
            self.reach(Reached::LateWriteRefused);
        }
        written
    }

    /// The next owner's number, and the token of it.
    pub(crate) fn next_owner(&self, world: &mut World) -> idem_core::OwnerToken {
        world.owners += 1;
        token(world.owners)
    }

    /// A new record, and a new life of its key.
    pub(crate) fn insert(&self, world: &mut World, client: u8) {
        let owner = self.next_owner(world);
        let hash = self.hashes[usize::from(self.command_of(client))];
        let new = idem_core::store::NewClaim { scope: self.scope.clone(), hash, owner, lease: self.rules.lease };
        world.row = Some(Arc::new(transition::insert(&new, at(world.now))));
        world.told.lives += 1;
        world.told.sent = [0; CALLS];
        world.told.body = None;
    }

    /// An answer reaches its client.
    pub(crate) fn tell(&self, world: &mut World, client: u8, got: Option<Got>) {
        if client == NOBODY {
            return;
        }
        let known = &mut world.clients[usize::from(client)].got;
        *known = known.or(got);
    }

    /// A stored answer reaches its client.
    pub(crate) fn replay(&self, world: &mut World, client: u8, response: &StoredResponse) {
        let body: [u8; 3] = response.body.as_deref().and_then(|body| body.try_into().ok()).expect("it was kept");
        let told = &mut world.told;
        told.changed |= told.body.is_some_and(|before| before != body);
        told.body = Some(body);
        let command = self.command_of(client);
        told.crossed |= body[0] != command;
        let is_done = response.status < 400;
        let effect = |call: u8| world.providers[usize::from(call)].effects[usize::from(body[0])] > 0;
        world.told.untrue |= is_done && !(0..self.calls()).all(effect);
        self.tell(world, client, Some(if is_done { Got::Done } else { Got::Refused }));
    }

    /// A decision that takes no write, as the client gets it.
    pub(crate) fn answer(&self, world: &mut World, client: u8, record: &Record, decision: Decision) {
        match (decision, &record.status) {
            (Decision::Replay, Status::Completed(finished) | Status::FailedReplayable(finished)) => {
                self.reach(Reached::Replay);
                self.replay(world, client, &finished.response);
            }
            (Decision::Mismatch { .. }, _) => {
                self.reach(Reached::Mismatch);
                self.tell(world, client, Some(Got::Mismatch));
            }
            (Decision::Expired | Decision::NotKept, _) => self.tell(world, client, Some(Got::Expired)),
            (Decision::Unresolved, _) => self.tell(world, client, Some(Got::Unresolved)),
            // Come again.
            _ => {}
        }
    }

    /// An answer's text says whose it is: command, attempt, status.
    pub(crate) fn response(&self, record: &Record, status: u16) -> StoredResponse {
        let body = vec![self.command_in(record), record.owner.as_bytes()[0], u8::from(status >= 400)];
        StoredResponse { status, headers: Vec::new(), body: Some(body) }
    }
}

/// Whether a record needs nobody any more.
pub(crate) fn is_settled(row: Option<&Arc<Record>>) -> bool {
    row.is_none_or(|record| match record.status {
        Status::Completed(_) | Status::FailedReplayable(_) | Status::Expired { .. } => true,
        Status::FailedRetryable { .. } => !record.has_open_call() || record.is_parked(),
        Status::Unknown { .. } => record.is_parked(),
        Status::InProgress { .. } => false,
    })
}

pub(crate) fn index(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).expect("there are two")
}

pub(crate) fn applied() -> CallState {
    CallState::Applied(vec![1])
}

pub(crate) fn rejected() -> CallState {
    CallState::Rejected(vec![0])
}

/// The fence after one more owner.
pub(crate) fn taken(record: &Record, owner: idem_core::OwnerToken) -> Record {
    let fence: Fence = record.fence.next();
    Record { fence, owner, attempts: record.attempts + 1, ..record.clone() }
}

pub(crate) const NAMES: [&str; CALLS] = ["charge", "notify"];

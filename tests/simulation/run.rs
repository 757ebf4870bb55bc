//! One run of one seed, and what has to hold after it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::{IdempotencyKey, IdempotentCommand, MemoryStore, Record, Rules, Scope, Status, Tenant};

use crate::chance::{Chance, Event, Kind, SetClock};
use crate::client::{Client, Got};
use crate::node::{NAMES, Node, Pay, Shared, resource};
use crate::provider::{Habit, Provider};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) history: Vec<Event>,
    pub(crate) broken: Vec<String>,
    pub(crate) counts: Counts,
}

/// How much happened: a run in which nothing goes wrong shows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) crashes: u64,
    pub(crate) retaken: u64,
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) mismatched: u64,
    pub(crate) unresolved: u64,
    pub(crate) expired: u64,
    pub(crate) repeated_calls: u64,
}

impl Counts {
    pub(crate) fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("crashes", self.crashes),
            ("records with more than one owner", self.retaken),
            ("answers", self.answered),
            ("refusals", self.refused),
            ("mismatches", self.mismatched),
            ("left to a person", self.unresolved),
            ("expired", self.expired),
            ("calls made again", self.repeated_calls),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.retaken += other.retaken;
        self.answered += other.answered;
        self.refused += other.refused;
        self.mismatched += other.mismatched;
        self.unresolved += other.unresolved;
        self.expired += other.expired;
        self.repeated_calls += other.repeated_calls;
    }
}

impl Report {
    /// One number for all that happened.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.history.hash(&mut hasher);
        hasher.finish()
    }
}

/// Plays one seed.
pub(crate) fn run(seed: u64) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(seed))
}

async fn play(seed: u64) -> Report {
    let chance = Chance::new(seed);
    let clock = SetClock::new(&chance, 0);
    let habits = (0..1 + chance.below(2)).map(|_| Habit::ALL[chance.below(4) as usize]);
    let providers: Vec<_> = habits.map(|habit| Provider::new(&chance, habit)).collect();
    let window = if chance.percent(25) { Duration::from_secs(60) } else { Duration::from_secs(24 * 60 * 60) };
    let shared = Shared {
        chance: chance.clone(),
        store: MemoryStore::with_clock(Arc::new(clock.clone())),
        tenant: Tenant::new("t").unwrap(),
        rules: Rules { window, ..Rules::default() },
        providers: Arc::new(providers),
        business: Arc::default(),
    };
    let nodes: Vec<_> = (0..2).map(|_| Some(Node::new(&shared))).collect();
    let nodes = Arc::new(Mutex::new(nodes));
    let clients = clients(&chance);
    let mut living = Vec::new();
    for client in &clients {
        let gives_up = chance.percent(20);
        living.push(tokio::spawn(client.clone().lives(chance.clone(), Arc::clone(&nodes), gives_up)));
    }

    let mut crashes = 0;
    for _ in 0..ROUNDS_OF_FAULTS {
        chance.wait(Duration::from_secs(20)).await;
        let at = chance.below(2) as usize;
        if chance.percent(if chance.sluggish { 5 } else { 40 }) {
            chance.tell(Kind::Info, || format!("node {at} dies"));
            crashes += 1;
            let dead = nodes.lock().unwrap()[at].take();
            drop(dead);
            chance.wait(Duration::from_secs(10)).await;
            let born = Node::new(&shared);
            nodes.lock().unwrap()[at] = Some(born);
        }
        if chance.percent(10) {
            let ahead = chance.below(600) as i64 - 300;
            chance.tell(Kind::Info, || format!("the database's clock is {ahead} s ahead"));
            clock.set(ahead);
        }
    }
    chance.heal();
    chance.tell(Kind::Info, || "nothing goes wrong any more".to_owned());

    let scope = |key: &IdempotencyKey| Scope::new(shared.tenant.clone(), Pay::OPERATION, key.clone());
    let record = |client: &Client| shared.store.record(&scope(&client.key));
    let mut broken = Vec::new();
    let mut patience = 0;
    loop {
        let waits = living.iter().any(|client| !client.is_finished());
        let unsettled = clients.iter().filter_map(record).any(|record| !is_settled(&record));
        if !waits && !unsettled {
            break;
        }
        patience += 1;
        if patience > ROUNDS_OF_PATIENCE {
            let waiting: Vec<_> = clients.iter().filter(|client| client.got.lock().unwrap().is_none()).collect();
            let names: Vec<_> = waiting.iter().map(|client| &client.name).collect();
            broken.push(format!("not at rest: {names:?}, {:?}", clients.iter().map(record).collect::<Vec<_>>()));
            break;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let records: Vec<_> = clients.iter().map(|client| (client, record(client))).collect();
    let mut counts = judge(&shared, &records, &mut broken);
    counts.crashes = crashes;
    Report { history: chance.history(), broken, counts }
}

fn clients(chance: &Chance) -> Vec<Client> {
    let mut clients = Vec::new();
    for key in 0..1 + chance.below(2) {
        let declines = chance.percent(15);
        for number in 0..1 + chance.below(3) {
            // Some client takes a key that means another command.
            let amount = if chance.percent(20) { 11 } else { 10 };
            clients.push(Client {
                name: format!("client {key}.{number}"),
                key: format!("key-{key}").parse().unwrap(),
                command: Pay { amount, declines },
                got: Arc::default(),
                answers: Arc::default(),
            });
        }
    }
    clients
}

/// Completed, failed for good, free to be run again with no call open, forgotten, or left to a person.
fn is_settled(record: &Record) -> bool {
    match record.status {
        Status::Completed(_) | Status::FailedReplayable(_) | Status::Expired { .. } => true,
        Status::FailedRetryable { .. } => !record.has_open_call() || record.is_parked(),
        Status::Unknown { .. } => record.is_parked(),
        Status::InProgress { .. } => false,
    }
}

/// Invariants only.
fn judge(shared: &Shared, records: &[(&Client, Option<Record>)], broken: &mut Vec<String>) -> Counts {
    let mut counts = Counts::default();
    let business = shared.business.lock().unwrap().clone();
    let mut given: std::collections::BTreeMap<String, Got> = Default::default();
    for (provider, name) in shared.providers.iter().zip(NAMES) {
        for (key, known) in provider.known() {
            if known.effects > 1 {
                broken.push(format!("{} effects of {name} under {key}", known.effects));
            }
            counts.repeated_calls += u64::from(known.sent > 1);
        }
    }
    for (client, record) in records {
        let id = record.as_ref().map(resource);
        let row = id.as_ref().and_then(|id| business.get(id)).copied();
        for got in client.answers.lock().unwrap().iter() {
            match got {
                Got::Mismatch => counts.mismatched += 1,
                Got::Unresolved => counts.unresolved += 1,
                Got::Expired => counts.expired += 1,
                Got::Answer(status, body) => {
                    let is_done = *status < 400;
                    *(if is_done { &mut counts.answered } else { &mut counts.refused }) += 1;
                    let before = given.entry(client.key.as_str().to_owned()).or_insert_with(|| got.clone());
                    if before != got {
                        broken.push(format!("{} got {got:?}, and before {before:?} was given", client.name));
                    }
                    if is_done && !body.starts_with(&format!("{}:", client.command.amount)) {
                        broken.push(format!("{} got another command's {body}", client.name));
                    }
                    let effects = shared.providers.iter().zip(NAMES).map(|(provider, name)| {
                        let key = format!("{name}_{}", id.as_deref().unwrap_or_default().trim_start_matches("pay_"));
                        provider.known().get(&key).map_or(0, |known| known.effects)
                    });
                    if is_done && !effects.clone().all(|effects| effects == 1) {
                        broken.push(format!(
                            "{} was told {body}: {:?} effects",
                            client.name,
                            effects.collect::<Vec<_>>()
                        ));
                    }
                    if is_done && row != Some(client.command.amount) {
                        broken.push(format!("{} was told {body}, and the row is {row:?}", client.name));
                    }
                }
            }
        }
        let Some(record) = record else { continue };
        counts.retaken += u64::from(record.attempts > 1);
        let is_completed = matches!(record.status, Status::Completed(_));
        let is_expired = matches!(record.status, Status::Expired { .. });
        if is_completed != row.is_some() && !is_expired {
            broken.push(format!("{}: the row is {row:?}, the record {:?}", client.name, record.status.name()));
        }
        for (provider, name) in shared.providers.iter().zip(NAMES) {
            let key = record.calls.iter().find(|call| call.name == name).map(|call| call.key.to_string());
            let sent = key.and_then(|key| provider.known().get(&key).map(|known| known.sent)).unwrap_or_default();
            if sent > record.attempts {
                broken.push(format!("{}: {name} was sent {sent} times by {} owners", client.name, record.attempts));
            }
        }
    }
    counts
}

const ROUNDS_OF_FAULTS: u32 = 24;
/// In minutes. Within that a provider's retention ends and the last question is asked.
const ROUNDS_OF_PATIENCE: u32 = 80 * 60;

//! The order of each key, through whatever happens to relays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem_sqlx::outbox::{Event, Publish, PublishError, Relay, RelayOptions};

use super::{Place, patient};

/// Knows of each key how far it has come, and says so when an event comes too early.
#[derive(Clone)]
struct Judge(Arc<Mutex<Judged>>);

struct Judged {
    out: BTreeMap<String, BTreeSet<u32>>,
    early: Vec<String>,
    again: u32,
    chance: fastrand::Rng,
}

#[async_trait]
impl Publish for Judge {
    async fn publish(&self, event: &Event) -> Result<(), PublishError> {
        let hangs = {
            let mut judged = self.0.lock().unwrap();
            if judged.chance.u32(0..4) == 0 {
                return Err(PublishError::retry("away"));
            }
            let number: u32 = std::str::from_utf8(&event.payload).unwrap().parse().unwrap();
            let out = judged.out.entry(event.key.clone()).or_default();
            let is_early = (0..number).any(|before| !out.contains(&before));
            if !out.insert(number) {
                judged.again += 1;
            }
            if is_early {
                judged.early.push(format!("{} of {}", number, event.key));
            }
            judged.chance.u32(0..12) == 0
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Three relays, whose publishers fail by chance before and after they have published, and which die by chance: their
/// leases are taken from them while they go on, or they are dropped. Appenders go on meanwhile.
pub(super) async fn each_key_keeps_its_order_through_failures_and_crashes<P: Place>() {
    for seed in 0..2 {
        let place = P::fresh().await;
        let mut chance = fastrand::Rng::with_seed(seed);
        let judged = Judged { out: BTreeMap::new(), early: Vec::new(), again: 0, chance: chance.fork() };
        let judge = Judge(Arc::new(Mutex::new(judged)));
        let options = RelayOptions { backoff: Duration::ZERO, attempts: u32::MAX, lines: 3, ..patient() };
        let (mut appended, mut rounds) = (0, 0);
        while appended < 60 || place.count("outbox WHERE finished_at IS NULL").await > 0 {
            rounds += 1;
            assert!(rounds < 2000, "it does not come to an end");
            for _ in 0..chance.u32(0..8) {
                if appended < 60 {
                    let (key, number) = (appended % 4, appended / 4);
                    let event = Event {
                        payload: number.to_string().into_bytes(),
                        ..super::event(&format!("e{appended}"), &format!("key-{key}"))
                    };
                    let mut tx = place.begin().await;
                    idem_sqlx::outbox::append(&mut tx, &event).await.unwrap();
                    tx.commit().await.unwrap();
                    appended += 1;
                }
            }
            let relays: Vec<_> = (0..3)
                .map(|_| {
                    let relay = Relay::new(place.store().clone(), judge.clone()).options(options.clone());
                    let limit = chance.u32(1..10);
                    tokio::spawn(async move { relay.relay_once(limit).await })
                })
                .collect();
            if chance.u32(0..3) == 0 {
                tokio::time::sleep(Duration::from_millis(chance.u64(0..4))).await;
                place.hasten().await;
            }
            tokio::time::sleep(Duration::from_millis(chance.u64(0..20))).await;
            for relay in relays {
                relay.abort();
                let _ended_or_aborted = relay.await;
            }
            place.hasten().await;
        }
        let judged = judge.0.lock().unwrap();
        assert_eq!(judged.early, Vec::<String>::new(), "seed {seed}");
        assert!(judged.out.len() == 4 && judged.out.values().all(|out| out.len() == 15), "{:?}", judged.out);
        assert!(judged.again > 0, "nothing was published twice: no relay died in between");
    }
}

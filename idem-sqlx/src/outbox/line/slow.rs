//! A database whose answers are on their way for half of a lease, which the real ones cannot be asked for.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::outbox::statements::{ByHand, Queue, Read, Redriven};
use crate::outbox::{Backlog, DeadLetter, Event, Relay};

const LEASE: Duration = Duration::from_secs(2);

/// Gives these events, one after the other, all of one line.
#[derive(Clone)]
struct Slow(Arc<Inner>);

struct Inner {
    events: Mutex<VecDeque<Taken>>,
    settled: Mutex<Vec<(i64, Settle)>>,
    published: Mutex<Vec<String>>,
    /// Which of them come late.
    late: i64,
}

impl Slow {
    fn of(numbers: impl IntoIterator<Item = i64>, late: i64) -> Self {
        let event = |number: i64| Event {
            id: number.to_string(),
            topic: "payments".into(),
            key: "pay_1".into(),
            kind: "payment_paid".into(),
            version: 1,
            payload: Vec::new(),
        };
        let taken = |number| Taken { number, event: event(number), attempts: 1 };
        Self(Arc::new(Inner {
            events: Mutex::new(numbers.into_iter().map(taken).collect()),
            settled: Mutex::default(),
            published: Mutex::default(),
            late,
        }))
    }

    /// The next event; on its way for half of its lease, if it is the late one.
    async fn next(&self) -> Option<Taken> {
        let next = self.0.events.lock().unwrap().pop_front()?;
        if next.number == self.0.late {
            tokio::time::sleep(LEASE / 2).await;
        }
        Some(next)
    }

    async fn relayed(&self) -> (Relayed, Vec<String>, Vec<(i64, Settle)>) {
        let options = RelayOptions { lease: LEASE, ..RelayOptions::default() };
        let relayed = Relay::new(self.clone(), self.clone()).options(options).relay_once(10).await.unwrap();
        let (published, settled) = (self.0.published.lock().unwrap().clone(), self.0.settled.lock().unwrap().clone());
        (relayed, published, settled)
    }
}

#[async_trait]
impl Publish for Slow {
    async fn publish(&self, event: &Event) -> Result<(), PublishError> {
        self.0.published.lock().unwrap().push(event.id.clone());
        Ok(())
    }
}

#[async_trait]
impl Queue for Slow {
    async fn take(&self, _: &Lease, _: u32) -> Result<Vec<Read>, StoreError> {
        Ok(self.next().await.map(Ok).into_iter().collect())
    }

    async fn settle(&self, _: &Lease, number: i64, settle: &Settle) -> Result<Settled, StoreError> {
        self.0.settled.lock().unwrap().push((number, settle.clone()));
        let Settle::Published { next: true } = settle else { return Ok(Settled::Done(None)) };
        Ok(Settled::Done(self.next().await.map(|next| Box::new(Ok(next)))))
    }

    async fn dead(&self, _: u32) -> Result<Vec<DeadLetter>, StoreError> {
        unreachable!("a relay does not look at dead letters")
    }

    async fn redrive(&self, _: &str, _: &ByHand) -> Result<bool, StoreError> {
        unreachable!("a relay puts nothing back")
    }

    async fn redrive_topic(&self, _: &str, _: i64, _: u32, _: &ByHand) -> Result<Redriven, StoreError> {
        unreachable!("a relay puts nothing back")
    }

    async fn skip(&self, _: &str, _: &ByHand) -> Result<bool, StoreError> {
        unreachable!("a relay skips nothing")
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        unreachable!("a relay does not count")
    }

    async fn clean(&self, _: Duration, _: u32) -> Result<u64, StoreError> {
        unreachable!("one round does not clean up")
    }

    async fn clean_marks(&self, _: u32) -> Result<u64, StoreError> {
        unreachable!("one round does not clean up")
    }
}

/// Half of its lease is gone: who published it now could be at it when another one has it.
#[tokio::test]
async fn an_event_that_was_on_its_way_for_half_of_its_lease_is_not_published() {
    let (relayed, published, settled) = Slow::of([1], 1).relayed().await;
    assert_eq!((relayed, published), (Relayed { lost: 1, ..Relayed::default() }, Vec::new()));
    assert!(matches!(settled[..], [(1, Settle::Untried)]), "{settled:?}");
}

/// The same of one that came with the news that the one before it is marked.
#[tokio::test]
async fn a_next_event_that_was_on_its_way_for_half_of_its_lease_is_not_published() {
    let (relayed, published, settled) = Slow::of([1, 2, 3], 2).relayed().await;
    assert_eq!(relayed, Relayed { published: 1, lost: 1, ..Relayed::default() });
    assert_eq!(published, ["1"]);
    assert!(matches!(settled[..], [(1, Settle::Published { next: true }), (2, Settle::Untried)]), "{settled:?}");
}

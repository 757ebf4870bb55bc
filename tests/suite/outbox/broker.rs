//! Whoever the relay publishes to: it remembers all, and fails on request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use idem_sqlx::outbox::{Event, Publish, PublishError};
use tokio::sync::{Notify, Semaphore};

#[derive(Clone)]
pub(super) struct Broker(Arc<Inner>);

struct Inner {
    got: Mutex<Vec<Event>>,
    faults: Mutex<HashMap<String, VecDeque<Fault>>>,
    /// Who waits for a call that hangs is told here.
    hanging: Notify,
    /// Lets calls go on that hang.
    gate: Semaphore,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// It is not there.
    Away,
    /// It will not have it.
    Refuses,
    Panics,
    /// It does not take it, and does not answer, until it is let on.
    Hangs,
    /// It takes it, and does not answer, until it is let on.
    TakesAndHangs,
}

impl Broker {
    pub(super) fn new() -> Self {
        Self(Arc::new(Inner {
            got: Mutex::default(),
            faults: Mutex::default(),
            hanging: Notify::new(),
            gate: Semaphore::new(0),
        }))
    }

    /// The next calls for an event come to this.
    pub(super) fn will(self, id: &str, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.0.faults.lock().unwrap().entry(id.to_owned()).or_default().extend(faults);
        self
    }

    /// The ids of what it got, in order, and again where it got them again.
    pub(super) fn got(&self) -> Vec<String> {
        self.0.got.lock().unwrap().iter().map(|event| event.id.clone()).collect()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.0.got.lock().unwrap().clone()
    }

    /// Waits until a call hangs.
    pub(super) async fn hangs(&self) {
        self.0.hanging.notified().await;
    }

    pub(super) fn goes_on(&self) {
        self.0.gate.add_permits(1);
    }
}

#[async_trait]
impl Publish for Broker {
    async fn publish(&self, event: &Event) -> Result<(), PublishError> {
        let fault = self.0.faults.lock().unwrap().get_mut(&event.id).and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::Away) => return Err(PublishError::retry("no connection")),
            Some(Fault::Refuses) => return Err(PublishError::refused("the topic does not take it")),
            Some(Fault::Panics) => panic!("on purpose"),
            Some(Fault::Hangs | Fault::TakesAndHangs) | None => {}
        }
        if !matches!(fault, Some(Fault::Hangs)) {
            self.0.got.lock().unwrap().push(event.clone());
        }
        if let Some(Fault::Hangs | Fault::TakesAndHangs) = fault {
            self.0.hanging.notify_one();
            self.0.gate.acquire().await.unwrap().forget();
        }
        if let Some(Fault::Hangs) = fault {
            self.0.got.lock().unwrap().push(event.clone());
        }
        Ok(())
    }
}

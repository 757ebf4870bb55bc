//! A client: it sends its command until it gets an answer that ends it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::{Answer, IdempotencyKey, Outcome};

use crate::chance::{Chance, Kind};
use crate::node::{Node, Pay};

/// What ended a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Got {
    /// The answer, and its body.
    Answer(u16, String),
    Mismatch,
    Expired,
    Unresolved,
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) key: IdempotencyKey,
    pub(crate) command: Pay,
    pub(crate) got: Arc<Mutex<Option<Got>>>,
    /// Every answer that reached it.
    pub(crate) answers: Arc<Mutex<Vec<Got>>>,
}

impl Client {
    pub(crate) async fn lives(self, chance: Chance, nodes: Arc<Mutex<Vec<Option<Node>>>>, gives_up: bool) {
        chance.wait(Duration::from_secs(if chance.sluggish { 120 } else { 60 })).await;
        loop {
            chance.wait(Duration::from_secs(5)).await;
            if gives_up && chance.wrong(30) {
                chance.tell(Kind::Info, || format!("{} gives up", self.name));
                return;
            }
            let answered = {
                let mut nodes = nodes.lock().unwrap();
                let at = chance.below(nodes.len() as u64) as usize;
                nodes[at].as_mut().map(|node| node.request(self.key.clone(), self.command))
            };
            let Some(answered) = answered else { continue };
            chance.tell(Kind::Invoke, || self.name.clone());
            let patience = if chance.wrong(20) { chance.millis(10_000) } else { Duration::from_secs(300) };
            let heard = match tokio::time::timeout(patience, answered).await {
                Ok(Ok(Ok(outcome))) => self.told(outcome),
                Ok(Ok(Err(_))) | Ok(Err(_)) | Err(_) => {
                    chance.tell(Kind::Info, || format!("{} hears nothing", self.name));
                    continue;
                }
            };
            match heard {
                Ok(got) => {
                    chance.tell(Kind::Ok, || format!("{} gets {got:?}", self.name));
                    self.answers.lock().unwrap().push(got.clone());
                    // Not every client sees what it was sent.
                    if !chance.wrong(20) {
                        *self.got.lock().unwrap() = Some(got);
                        return;
                    }
                }
                Err(wait) => {
                    chance.tell(Kind::Fail, || format!("{} waits {wait:?}", self.name));
                    tokio::time::sleep(wait + chance.millis(1000)).await;
                }
            }
        }
    }

    /// What ends it, or when it comes again.
    fn told(&self, outcome: Outcome) -> Result<Got, Duration> {
        let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
        Ok(match outcome {
            Outcome::Done { reply, .. } => Got::Answer(reply.status, text(reply.body)),
            Outcome::Second(Answer::Replay { response, .. }) => {
                Got::Answer(response.status, text(response.body.unwrap()))
            }
            Outcome::Second(Answer::Mismatch(_)) => Got::Mismatch,
            Outcome::Second(Answer::Expired { .. } | Answer::NotKept { .. }) => Got::Expired,
            Outcome::Second(Answer::Unresolved { .. }) => Got::Unresolved,
            Outcome::Failed { retry_after, .. }
            | Outcome::Unknown { retry_after, .. }
            | Outcome::NotStored { retry_after }
            | Outcome::Second(
                Answer::InProgress { retry_after }
                | Answer::RetryLater { retry_after }
                | Answer::OutcomeUnknown { retry_after },
            ) => return Err(retry_after),
            other => panic!("{other:?}"),
        })
    }
}

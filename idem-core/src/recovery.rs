//! What a worker does for records that no client comes for: release them, ask their providers, or call a person.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::decide::{Tend, tend};
use crate::engine::{Came, Engine, Reached};
use crate::events::{Event, RecoveryStep};
use crate::store::{Dated, Evidence, Found, Guarded, Seen, StoreError, Tended};
use crate::transition::due_at;

/// What one page of recovery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that were looked at.
    pub looked: u64,
    /// Abandoned ones that the next client may run.
    pub released: u64,
    /// Ones that nobody knows the end of, to be asked about from now on.
    pub stranded: u64,
    /// Ones that a person was called for.
    pub parked: u64,
    /// Ones whose providers were asked.
    pub asked: u64,
    /// Ones that the asking settled, or made runnable again.
    pub settled: u64,
    /// Whether others may be left that were due when the round began: the next page has them.
    pub more: bool,
}

impl Engine {
    /// Looks after at most `limit` of the records that are due, a few at the same time. The next call goes on after them,
    /// until all are looked after that were due when the round began; then the next round begins, with those that have
    /// waited longest.
    ///
    /// Any number of nodes may do it at once: each record is taken by one of them.
    ///
    /// # Errors
    /// [`StoreError`] where the due records cannot be read. What goes wrong with one record is logged, and the others
    /// go on.
    pub async fn recover_once(&self, limit: u32) -> Result<Recovered, StoreError> {
        self.recover_page(limit, AT_ONCE, &|| false).await
    }

    /// [`Self::recover_once`], at most `at_once` of them at the same time; begins with no other once it is told to stop.
    pub(crate) async fn recover_page(
        &self,
        limit: u32,
        at_once: usize,
        is_stopped: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<Recovered, StoreError> {
        let reached = self.recovering().clone();
        let after = reached.as_ref().map(|reached| &reached.after);
        let mut due = self.store().due(self.shortest_grace(), after, limit).await?;
        let began = reached.as_ref().map(|reached| reached.began).or(due.first().map(|first| first.now));
        // What has become due since then is the next round's: else a round might never end, and those in front wait for
        // ever.
        let is_full = due.len() == limit as usize;
        due.retain(|found| due_at(&found.record) <= began);
        let is_over = !is_full || due.len() < limit as usize;
        let next = due.last().zip(began).filter(|_| !is_over);
        let next = next.map(|(last, began)| Reached { after: last.record.clone(), began });
        if after.is_none() {
            match self.store().oldest().await {
                Ok(oldest) => self.observe(&Event::Oldest(oldest)),
                // The records go first.
                Err(error) => self.observe(&Event::StoreFailed { code: error.code() }),
            }
        }
        let mut sum = Recovered { more: next.is_some(), ..Recovered::default() };
        let mut running = FuturesUnordered::new();
        for found in due {
            if running.len() >= at_once.max(1) {
                sum.add(running.next().await);
            }
            if is_stopped() {
                sum.more = true;
                break;
            }
            running.push(self.recover(found));
        }
        while let Some(one) = running.next().await {
            sum.add(Some(one));
        }
        *self.recovering() = next;
        Ok(sum)
    }

    /// Keeps what was learned about a call from outside of its owner (a provider's webhook, a late outcome), and makes its
    /// record due at once. Where it contradicts what the record has come to, the observer is told
    /// ([`Event::Contradicted`]). False where no call has that key.
    ///
    /// # Errors
    /// [`StoreError`]; sent again it may be kept twice, which harms nothing.
    pub async fn evidence(&self, evidence: &Evidence) -> Result<bool, StoreError> {
        self.inner().learn(evidence).await
    }

    async fn recover(&self, found: Found) -> Recovered {
        let looked = Recovered { looked: 1, ..Recovered::default() };
        self.tend_or_ask(found, looked).await.unwrap_or_else(|error| {
            self.observe(&Event::StoreFailed { code: error.code() });
            tracing::warn!(
                code = error.code(),
                error = &error as &dyn std::error::Error,
                "a record could not be recovered; the next round tries again"
            );
            looked
        })
    }

    async fn tend_or_ask(&self, found: Found, mut sum: Recovered) -> Result<Recovered, StoreError> {
        let scope = found.record.scope.clone();
        let operation = scope.operation();
        let rules = self.rules_of(operation).clone();
        let mut due = Some(found);
        while let Some(Found { record, now }) = due.take() {
            let learned = match record.has_open_call() {
                true => self.store().learned(&scope).await?,
                false => Vec::<Dated<Evidence>>::new(),
            };
            let to = match tend(&record, &|call| self.is_askable(&record, call, &learned), now, &rules) {
                Tend::Leave => break,
                Tend::Release => Tended::Released { retry_in: rules.backoff, keep: rules.keep() },
                Tend::Strand => Tended::Stranded { ask_in: Duration::ZERO },
                Tend::Park => Tended::Parked { ask_in: rules.ask_parked },
                Tend::Ask => {
                    let came = self.ask(record, &learned, &rules, rules.ask_lease / 2).await?;
                    sum.asked += u64::from(came != Came::NotTaken);
                    sum.settled += u64::from(came == Came::Settled);
                    sum.parked += u64::from(came == Came::Parked);
                    break;
                }
            };
            if let Guarded::Changed(_) = self.store().tend(&Seen::of(&record), &to).await? {
                break;
            }
            match to {
                Tended::Released { .. } => {
                    self.observe(&Event::Recovered { operation, step: RecoveryStep::Released });
                    sum.released += 1;
                }
                Tended::Stranded { .. } => {
                    self.observe(&Event::Recovered { operation, step: RecoveryStep::Stranded });
                    sum.stranded += 1;
                    // Its question is due now, and not only when the next round comes.
                    due = self.store().look(&scope).await?.map(|found| *found);
                }
                Tended::Parked { .. } => {
                    self.alert(&record, now);
                    sum.parked += 1;
                }
            }
        }
        Ok(sum)
    }
}

impl Recovered {
    fn add(&mut self, one: Option<Self>) {
        let Some(one) = one else { return };
        self.looked += one.looked;
        self.released += one.released;
        self.stranded += one.stranded;
        self.parked += one.parked;
        self.asked += one.asked;
        self.settled += one.settled;
    }
}

/// How many records are looked after at the same time: most of it is waiting for providers.
const AT_ONCE: usize = 8;

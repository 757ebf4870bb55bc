//! Looking for records that are not settled.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::calls::CallRecord;
use crate::engine::Engine;
use crate::record::{Record, Status};
use crate::store::{Found, Mark, StoreError};
use crate::transition::due_at;

/// What a person looks for among the records that are not settled. Everything that is said must hold; nothing said finds
/// them all.
///
/// ```
/// # use std::time::Duration;
/// # use idem_core::{Engine, MemoryStore};
/// use idem_core::operator::{Search, Standing};
///
/// # futures_executor::block_on(async {
/// # let engine = Engine::builder(MemoryStore::new()).build()?;
/// let charges = Search { standing: Some(Standing::Parked), call: Some("charge".into()), ..Search::default() };
/// let page = engine.search(&charges, None, 100).await?;
/// assert!(page.found.is_empty() && page.next.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// It stands so.
    pub standing: Option<Standing>,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Of which operation.
    pub operation: Option<String>,
    /// A call of that name is open.
    pub call: Option<String>,
    /// That call, or any where none is named, is open since then or later.
    pub opened_from: Option<SystemTime>,
    /// It is open since before then.
    pub opened_until: Option<SystemTime>,
    /// The key was first seen at least that long ago, by the store's clock.
    pub older_than: Duration,
}

/// How a record stands that is not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Only a person can help.
    Parked,
    /// Nobody knows how it ended, and its providers are asked.
    Unknown,
    /// Somebody runs it, or did when the lease was last renewed.
    InProgress,
    /// It failed with a call left open, and waits for its client to come again.
    Retryable,
}

/// A page of records, in the order in which somebody has to look at them.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Those that were looked for.
    pub found: Vec<Found>,
    /// Where the next page begins; `None`: there are no more.
    pub next: Option<Mark>,
}

impl Standing {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Parked, Self::Unknown, Self::InProgress, Self::Retryable];

    /// How this record stands; `None` where it is settled.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        match record.status {
            _ if record.is_parked() => Some(Self::Parked),
            Status::Unknown { .. } => Some(Self::Unknown),
            Status::InProgress { .. } => Some(Self::InProgress),
            Status::FailedRetryable { .. } if record.has_open_call() => Some(Self::Retryable),
            _ => None,
        }
    }

    /// The name that lists show.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Unknown => "unknown",
            Self::InProgress => "in_progress",
            Self::Retryable => "retryable",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Search {
    /// Whether `record` is one of those that are looked for; `now` is the store's clock when it was read.
    #[must_use]
    pub fn finds(&self, record: &Record, now: SystemTime) -> bool {
        let standing = Standing::of(record);
        standing.is_some()
            && (self.standing.is_none() || self.standing == standing)
            && self.tenant.as_deref().is_none_or(|tenant| tenant == record.scope.tenant().as_str())
            && self.operation.as_deref().is_none_or(|operation| operation == record.scope.operation())
            && now.duration_since(record.created_at).unwrap_or_default() >= self.older_than
            && (!self.speaks_of_calls() || record.open_calls().any(|call| self.finds_call(call)))
    }

    fn speaks_of_calls(&self) -> bool {
        self.call.is_some() || self.opened_from.is_some() || self.opened_until.is_some()
    }

    fn finds_call(&self, call: &CallRecord) -> bool {
        self.call.as_deref().is_none_or(|name| name == call.name)
            && self.opened_from.is_none_or(|from| from <= call.opened_at)
            && self.opened_until.is_none_or(|until| call.opened_at < until)
    }
}

impl Engine {
    /// A page of the records that are looked for, with at most `limit` of them, from `after` on: the `next` of the page
    /// before. A record that moves meanwhile, since a worker or its client came for it, may be missing, or be there twice.
    ///
    /// It reads every record that is not settled, a bounded number at a time, and none that is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn search(&self, search: &Search, after: Option<&Mark>, limit: u32) -> Result<Page, StoreError> {
        let mut page = Page { found: Vec::new(), next: after.cloned() };
        loop {
            let unsettled = self.store().unsettled(page.next.as_ref(), BATCH).await?;
            let is_last = unsettled.len() < BATCH as usize;
            for found in unsettled {
                if page.found.len() == limit as usize {
                    // There is one more at least; the next page begins after the last one that was looked at.
                    return Ok(page);
                }
                page.next = due_at(&found.record).map(|at| Mark { at, scope: found.record.scope.clone() });
                if search.finds(&found.record, found.now) {
                    page.found.push(found);
                }
            }
            if is_last {
                page.next = None;
                return Ok(page);
            }
        }
    }
}

/// Records read at once.
const BATCH: u32 = 500;

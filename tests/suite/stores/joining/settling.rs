//! What a worker finds out: rows and record are settled in one transaction, or neither is.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use idem_core::decide::Finding;
use idem_core::operator::Resolution;
use idem_core::store::{AnsweredEnd, End, Guarded, Recovering, Tended};
use idem_core::{Begin, CallRecord, Reconciler, Replay, Settled, Status, StoredResponse, Transient};

use super::*;

/// A provider that has made the charge, and a row for that.
struct Witness<R> {
    rows: Arc<R>,
    /// Its first commit fails.
    fails: AtomicBool,
    failed: Arc<AtomicBool>,
}

#[async_trait]
impl<R: Rows> Reconciler<Tx<R>> for Witness<R> {
    async fn find(&self, _: &Record, _: &CallRecord) -> Result<Finding, Transient> {
        Ok(Finding::applied(&7).unwrap())
    }

    async fn settle(
        &self,
        tx: &mut Tx<R>,
        _: &Record,
        call: &CallRecord,
    ) -> Result<Settled, Box<dyn Error + Send + Sync>> {
        self.rows.insert(tx, "settled").await.map_err(|failure| failure.to_string())?;
        if self.fails.swap(false, Ordering::SeqCst) {
            self.failed.store(R::doom(tx).await, Ordering::SeqCst);
        }
        let receipt: u32 = call.outcome().unwrap()?;
        Ok(Settled::Reply(Reply::status(201).header("location", "/7").body(receipt.to_string())))
    }
}

struct Desk<R> {
    rows: Arc<R>,
    engine: Engine,
    failed: Arc<AtomicBool>,
}

impl<R: Rows> Desk<R> {
    /// A record whose process announced a charge, and died.
    async fn abandoned(replay: Replay) -> Self {
        Self::of(replay, false).await
    }

    async fn of(replay: Replay, fails: bool) -> Self {
        let (rows, failed) = (Arc::new(R::fresh().await), Arc::<AtomicBool>::default());
        let witness = Witness { rows: Arc::clone(&rows), fails: fails.into(), failed: Arc::clone(&failed) };
        // Half of it is enough to settle, also on a busy machine.
        let ask_lease = Duration::from_secs(2);
        let engine = Engine::builder(rows.store().clone())
            .rules(Rules {
                ask_lease,
                replay,
                grace: Duration::from_nanos(1),
                backoff: Duration::from_millis(1),
                ..short()
            })
            .call::<Pay>("charge", CallClass::QueryOnly { quiescence: Duration::ZERO })
            .reconciler::<Pay, _, _>("charge", rows.store().clone(), witness)
            .build()
            .unwrap();
        let Begin::Run(claim) = engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap() else {
            panic!("it was there before")
        };
        let _announced = claim.open("charge").await.unwrap();
        Self { rows, engine, failed }
    }

    async fn record(&self) -> Record {
        self.rows.store().look(&Scope::new(tenant(), "pay", key())).await.unwrap().unwrap().record
    }

    /// Lets a worker work until `is_so`.
    async fn work_until(&self, is_so: impl Fn(&Record) -> bool) {
        let working = async {
            while !is_so(&self.record().await) {
                self.engine.recover_once(10).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), working).await.expect("a worker settles it");
    }

    async fn lease_is_over(&self) {
        tokio::time::sleep(Duration::from_millis(40)).await;
    }

    /// Somebody asks, as soon as nobody else does.
    async fn takes_to_ask(&self, lease: Duration) {
        loop {
            let take = TakeOver { seen: Seen::of(&self.record().await), owner: OwnerToken::random(), lease };
            if let Guarded::Written { .. } = self.rows.store().take_to_ask(&take).await.unwrap() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn response(&self) -> StoredResponse {
        match self.record().await.status {
            Status::Completed(finished) => finished.response,
            other => panic!("{other:?}"),
        }
    }
}

fn is_completed(record: &Record) -> bool {
    record.status.name() == StatusName::Completed
}

pub(crate) async fn settled_rows_and_record_are_committed_together<R: Rows>() {
    let desk = Desk::<R>::abandoned(Replay::Stored).await;
    desk.work_until(is_completed).await;
    assert_eq!(desk.rows.rows().await, ["settled"]);
    assert_eq!(desk.response().await.body.as_deref(), Some(&b"7"[..]));
}

pub(crate) async fn a_worker_that_was_overtaken_takes_its_rows_back<R: Rows>() {
    let desk = Desk::<R>::abandoned(Replay::Stored).await;
    desk.lease_is_over().await;
    let seen = Seen::of(&desk.record().await);
    let store = desk.rows.store();
    store.tend(&seen, &Tended::Stranded { ask_in: Duration::ZERO }).await.unwrap();
    desk.takes_to_ask(Duration::from_millis(1)).await;
    let slow = desk.record().await.ownership();
    desk.takes_to_ask(Duration::from_secs(60)).await;
    let before = desk.record().await;

    let mut tx = desk.rows.begin().await;
    desk.rows.insert(&mut tx, "settled").await.unwrap();
    let rules = Rules::default();
    let response = StoredResponse { status: 201, headers: Vec::new(), body: None };
    let end = AnsweredEnd::Ended(End::Completed { response, keep: rules.keep() });
    let written = store.answer_in(tx, &slow, &Answered { closed: Vec::new(), resource: None, end }).await.unwrap();
    assert!(matches!(written, Fenced::Refused(Some(_))), "{written:?}");
    assert_eq!((desk.record().await, desk.rows.rows().await), (before, vec![]));
}

pub(crate) async fn a_settlement_whose_commit_failed_is_asked_about_again<R: Rows>() {
    let desk = Desk::<R>::of(Replay::Stored, true).await;
    desk.work_until(is_completed).await;
    // Fence 1 was the process that died; then the worker, and once more after a commit that failed.
    let asked = if desk.failed.load(Ordering::SeqCst) { 2 } else { 1 };
    assert_eq!(desk.record().await.fence.get(), 1 + asked);
    assert_eq!(desk.rows.rows().await, ["settled"]);
}

/// Whoever ends the record: the work, in a transaction or not, a worker, or a person.
pub(crate) async fn an_answer_that_is_written_anew_is_stored_by_nobody<R: Rows>() {
    let replay = Replay::Rebuilt { schema_version: 3 };
    let rules = Rules { replay, ..Rules::default() };
    let mut kept = Vec::new();
    for way in 0..3 {
        let bench = Bench::<R>::of(rules.clone()).await;
        let done = match way {
            0 => bench.run(5, async |_| Ok(paid())).await,
            1 => bench.run(5, async |claim| Ok(claim.commit(bench.rows.begin().await, paid()).await?.into())).await,
            _ => bench.run_tx(5, async |tx| Ok((tx, paid()))).await,
        };
        assert!(matches!(done, Outcome::Done { reply, .. } if reply == paid()), "its own client gets it whole");
        let Status::Completed(finished) = bench.record().await.status else { panic!("it is completed") };
        kept.push(finished.response);
    }

    let desk = Desk::<R>::abandoned(replay).await;
    desk.work_until(is_completed).await;
    kept.push(desk.response().await);

    let desk = Desk::<R>::abandoned(replay).await;
    desk.lease_is_over().await;
    let seen = Seen::of(&desk.record().await);
    desk.rows.store().tend(&seen, &Tended::Parked { ask_in: Duration::from_secs(60) }).await.unwrap();
    let scope = Scope::new(tenant(), "pay", key());
    desk.engine.resolve(&scope, &Resolution::completed(paid()), "ada", "on the statement").await.unwrap();
    kept.push(desk.response().await);

    for (way, kept) in kept.iter().enumerate() {
        assert_eq!((kept.status, &kept.body, kept.schema_version()), (201, &None, Some(3)), "way {way}");
        assert_eq!(kept.headers.len(), 1, "way {way}: nothing but the version: {:?}", kept.headers);
    }
}

//! `open_in`, `checkpoint_in`, and whose transaction it is.

use super::*;

pub(crate) async fn a_lost_claim_leaves_the_transaction_usable<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let lost = bench.run(5, async |claim| {
        bench.is_taken_over().await;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "before").await?;
        assert!(matches!(claim.open_in(&mut tx, "charge").await, Err(NotCalled::Lost(_))));
        assert!(matches!(claim.checkpoint_in(&mut tx, "half", 1, &1).await, Err(NotCheckpointed::Lost)));
        bench.rows.insert(&mut tx, "after").await?;
        Joins::commit(tx).await?;
        Ok(paid())
    });
    assert!(matches!(lost.await, Outcome::Second(Answer::InProgress { .. })));
    assert_eq!(bench.rows.rows().await, ["after", "before"]);
    let record = bench.record().await;
    assert_eq!((record.calls, record.checkpoint), (Vec::new(), None));
}

pub(crate) async fn an_announcement_is_committed_with_the_rows<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let done = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "pending").await?;
        let charge = claim.open_in(&mut tx, "charge").await?;
        assert_eq!(bench.record().await.calls, []);
        Joins::commit(tx).await?;
        assert!(bench.record().await.has_open_call());
        let receipt: u32 = charge.run(|_| async { Ok::<_, Broken>(7) }).await?;
        Ok(paid().body(receipt.to_string()))
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    assert_eq!((bench.rows.rows().await, bench.record().await.has_open_call()), (vec!["pending".to_owned()], false));
}

/// What is announced in a transaction that nobody has committed is announced to nobody.
pub(crate) async fn a_call_waits_for_its_commit<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let asked = AtomicUsize::new(0);
    let failed = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        let charge = claim.open_in(&mut tx, "charge").await?;
        let made: Result<u32, _> = charge
            .run(|_| async {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Broken>(7)
            })
            .await;
        let failure = made.expect_err("it is not announced");
        let why = failure.source().and_then(|error| error.downcast_ref::<NotCalled>()).map(NotCalled::code);
        assert_eq!(why, Some("CALL_NOT_COMMITTED"));
        drop(tx);
        Err(failure)
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!((asked.into_inner(), bench.record().await.calls), (0, vec![]));
}

/// A refusal after a rolled back announcement leaves nothing for recovery to find out.
pub(crate) async fn an_announcement_that_is_taken_back_was_never_made<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let refused = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "pending").await?;
        let _text = claim.open_in(&mut tx, "text").await?;
        drop(tx);
        Err(Failure::reply(Reply::status(402)))
    });
    assert!(matches!(refused.await, Outcome::Done { reply, .. } if reply.status == 402));
    let record = bench.record().await;
    assert_eq!((record.status.name(), record.calls), (StatusName::FailedReplayable, vec![]));

    // Committed, it is there, and the end takes notice of it.
    let bench = Bench::<R>::new().await;
    let unknown = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        let _text = claim.open_in(&mut tx, "text").await?;
        Joins::commit(tx).await?;
        Err(Failure::reply(Reply::status(402)))
    });
    assert!(matches!(unknown.await, Outcome::Unknown { .. }));
    assert!(bench.record().await.has_open_call());
}

pub(crate) async fn a_checkpoint_is_committed_with_the_rows<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run(5, async |claim| {
        assert_eq!(claim.last_checkpoint(), None);
        let mut tx = bench.rows.begin().await;
        claim.checkpoint_in(&mut tx, "taken back", 1, &1).await?;
        drop(tx);
        assert_eq!(bench.record().await.checkpoint, None);
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "reserved").await?;
        claim.checkpoint_in(&mut tx, "reserved", 2, &"seat 7").await?;
        Joins::commit(tx).await?;
        Err("and then it broke".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    bench.retry_is_due().await;
    let done = bench.run(5, async |claim| {
        let checkpoint = claim.last_checkpoint().expect("the first attempt left one");
        assert_eq!((checkpoint.name.as_str(), checkpoint.version), ("reserved", 2));
        assert_eq!(checkpoint.data_as::<String>()?, "seat 7");
        Ok(paid())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["reserved"]);
}

pub(crate) async fn a_checkpoint_of_its_own_is_read_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run(5, async |claim| {
        claim.checkpoint("half", 1, &[1, 2]).await?;
        assert_eq!(bench.record().await.checkpoint.map(|checkpoint| checkpoint.data), Some(b"[1,2]".to_vec()));
        Err("and then it broke".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    bench.retry_is_due().await;
    let done = bench.run(5, async |claim| {
        assert_eq!(claim.last_checkpoint().expect("one").data_as::<Vec<u32>>()?, [1, 2]);
        Ok(paid())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
}

pub(crate) async fn a_transaction_of_another_database_is_refused<R: Rows>() {
    let [bench, other] = [Bench::<R>::new().await, Bench::<R>::new().await];
    let failed = bench.run(5, async |claim| {
        let mut tx = other.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        let Err(NotCalled::NotAnnounced { source, .. }) = claim.open_in(&mut tx, "charge").await else {
            panic!("it was announced elsewhere")
        };
        assert_eq!(other_store(&source), Some("TRANSACTION_OF_ANOTHER_STORE"));
        match claim.commit(tx, paid()).await {
            Err(NotCommitted::NotWritten(source)) => {
                assert_eq!(other_store(&source), Some("TRANSACTION_OF_ANOTHER_STORE"));
                Err(source.into())
            }
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!((bench.rows.rows().await, other.rows.rows().await), (vec![], vec![]));
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

/// A cache in front, say; and an engine on another kind of store is told so before anything runs.
pub(crate) async fn a_store_behind_another_is_found<R: Rows>() {
    let rows = &R::fresh().await;
    let front = FaultyStore::over(FaultyStore::over(rows.store().clone()));
    let engine = Engine::builder(front).build().unwrap();
    let done = engine
        .run_tx(rows.store(), &tenant(), &key(), &Pay { cents: 5 }, |mut tx, _| async move {
            rows.insert(&mut tx, "paid").await?;
            Ok((tx, paid()))
        })
        .await;
    assert!(matches!(done, Ok(Outcome::Done { .. })));
    assert_eq!(rows.rows().await, ["paid"]);

    let elsewhere = Engine::builder(FaultyStore::opaque(idem_core::MemoryStore::new())).build().unwrap();
    let refused = elsewhere
        .run_tx(rows.store(), &tenant(), &"key-2".parse().unwrap(), &Pay { cents: 5 }, |_, _| async {
            panic!("it ran")
        })
        .await;
    assert_eq!(other_store(&refused.unwrap_err()), Some("TRANSACTION_OF_ANOTHER_STORE"));
}

/// Whoever drops the work half-way leaves no row, no lock and no answer; the key is free after its lease.
pub(crate) async fn work_that_is_dropped_leaves_nothing<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let hanging = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        std::future::pending::<()>().await;
        Ok((tx, paid()))
    });
    assert!(tokio::time::timeout(Duration::from_millis(300), hanging).await.is_err());
    assert_eq!(bench.rows.rows().await, [""; 0]);
    let again = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    assert!(matches!(again.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["paid"]);
}

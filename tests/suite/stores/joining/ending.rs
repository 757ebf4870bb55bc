//! `claim.commit` and `run_tx`: rows and answer.

use idem_core::Begin;

use super::*;
use crate::support::faulty::{Fails, Request};

pub(crate) async fn rows_and_answer_are_committed_together<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let first = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    let Outcome::Done { reply, .. } = first.await else { panic!("it is done") };
    assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
    assert_eq!(bench.record().await.status.name(), StatusName::Completed);
    let second = bench.run_tx(5, async |_| panic!("it ran twice")).await;
    assert!(matches!(second, Outcome::Second(Answer::Replay { response, .. }) if response.status == 201));
}

pub(crate) async fn a_claim_commits_by_itself<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let first = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        Ok(claim.commit(tx, paid()).await?.into())
    });
    let Outcome::Done { reply, .. } = first.await else { panic!("it is done") };
    assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
    let record = bench.record().await;
    // The claim and the commit, and nothing after it.
    assert_eq!((record.status.name(), record.revision.get()), (StatusName::Completed, 2));
}

pub(crate) async fn a_refusal_takes_rows_back_and_is_remembered<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let refused = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Err(Failure::reply(Reply::status(409).body("no funds")))
    });
    assert!(matches!(refused.await, Outcome::Done { reply, .. } if reply.status == 409));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::FailedReplayable);
    let second = bench.run_tx(5, async |_| panic!("it ran twice")).await;
    assert!(matches!(second, Outcome::Second(Answer::Replay { response, .. }) if response.status == 409));
}

pub(crate) async fn a_failure_takes_rows_back_and_may_be_tried_again<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let failed = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Err("no".into())
    });
    assert!(matches!(failed.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    // The key still means what it meant.
    assert!(matches!(bench.run_tx(6, async |_| panic!("it ran")).await, Outcome::Second(Answer::Mismatch(_))));
    bench.retry_is_due().await;
    let again = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, paid()))
    });
    assert!(matches!(again.await, Outcome::Done { .. }));
    assert_eq!(bench.rows.rows().await, ["paid"]);
}

pub(crate) async fn a_panic_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let panicked = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        panic!("on purpose")
    });
    assert!(matches!(panicked.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

pub(crate) async fn an_answer_that_is_not_final_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let busy = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        Ok((tx, Reply::status(503)))
    });
    assert!(matches!(busy.await, Outcome::Failed { reply: Some(reply), .. } if reply.status == 503));
    bench.retry_is_due().await;
    let busy = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        match claim.commit(tx, Reply::status(503)).await {
            Err(error @ NotCommitted::NotFinal { status: 503 }) => Err(error.into()),
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(busy.await, Outcome::Failed { .. }));
    assert_eq!(bench.rows.rows().await, [""; 0]);
}

pub(crate) async fn a_lost_claim_takes_rows_back<R: Rows>() {
    let bench = Bench::<R>::of(short()).await;
    let lost = bench.run(5, async |claim| {
        bench.is_taken_over().await;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        match claim.commit(tx, paid()).await {
            Err(error @ NotCommitted::Lost) => Err(error.into()),
            other => panic!("{other:?}"),
        }
    });
    assert!(matches!(lost.await, Outcome::Second(Answer::InProgress { .. })));
    assert_eq!(bench.rows.rows().await, [""; 0]);
    assert_eq!(bench.record().await.status.name(), StatusName::InProgress);
}

/// Also where the work takes no notice of it.
pub(crate) async fn a_commit_that_failed_is_no_success<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let mut doomed = true;
    let failed = bench.run_tx(5, async |mut tx| {
        bench.rows.insert(&mut tx, "paid").await?;
        doomed = R::doom(&mut tx).await;
        Ok((tx, paid()))
    });
    let failed = failed.await;
    if !doomed {
        return;
    }
    assert!(matches!(failed, Outcome::Failed { reply: None, .. }), "{failed:?}");
    assert_eq!((bench.rows.rows().await, bench.record().await.status.name()), (vec![], StatusName::FailedRetryable));

    bench.retry_is_due().await;
    let ignored = bench.run(5, async |claim| {
        let mut tx = bench.rows.begin().await;
        R::doom(&mut tx).await;
        assert!(matches!(claim.commit(tx, paid()).await, Err(NotCommitted::Unknown(_))));
        Ok(paid())
    });
    assert!(matches!(ignored.await, Outcome::Failed { reply: None, .. }));
    assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
}

pub(crate) async fn a_commit_whose_answer_was_lost_is_found_out<R: Rows>() {
    for ignored in [false, true] {
        let bench = Bench::<R>::new().await;
        let done = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let committed = claim.commit(Lossy { tx, arrives: true }, paid()).await;
            let Err(error @ NotCommitted::Unknown(_)) = committed else { panic!("{committed:?}") };
            if ignored { Ok(Reply::status(200)) } else { Err(error.into()) }
        });
        let Outcome::Done { reply, .. } = done.await else { panic!("it is done") };
        assert_eq!((reply, bench.rows.rows().await), (paid(), vec!["paid".to_owned()]));
        assert_eq!(bench.record().await.status.name(), StatusName::Completed);
    }
}

pub(crate) async fn a_commit_that_never_arrived_is_found_out<R: Rows>() {
    for ignored in [false, true] {
        let bench = Bench::<R>::new().await;
        let failed = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let committed = claim.commit(Lossy { tx, arrives: false }, paid()).await;
            let Err(error @ NotCommitted::Unknown(_)) = committed else { panic!("{committed:?}") };
            if ignored { Ok(paid()) } else { Err(error.into()) }
        });
        assert!(matches!(failed.await, Outcome::Failed { reply: None, .. }));
        assert_eq!(bench.rows.rows().await, [""; 0]);
        assert_eq!(bench.record().await.status.name(), StatusName::FailedRetryable);
    }
}

/// The store is away when the fate of a commit is asked for: the client is told to ask again, and the task goes on until it
/// knows.
pub(crate) async fn a_commit_whose_fate_cannot_be_read_is_not_told_as_a_success<R: Rows>() {
    for arrives in [true, false] {
        let rows = &R::fresh().await;
        let front = FaultyStore::over(rows.store().clone());
        (0..8).for_each(|_| front.plan(Request::Finish, Fails::Before));
        let rules = Rules { patience: Duration::from_millis(20), ..Rules::default() };
        let engine = Engine::builder(front.clone()).rules(rules).build().unwrap();
        let begun = engine.begin(&tenant(), &key(), &Pay { cents: 5 }).await.unwrap();
        let Begin::Run(claim) = begun else { panic!("it was there before") };
        let work = |claim: Claim| async move {
            let mut tx = rows.begin().await;
            rows.insert(&mut tx, "paid").await?;
            Ok(claim.commit(Lossy { tx, arrives }, paid()).await?.into())
        };
        let early = Mutex::default();
        let at_last = engine.conduct(claim, work, |told| *early.lock().unwrap() = Some(told)).await;
        assert!(matches!(*early.lock().unwrap(), Some(Outcome::NotStored { .. })), "{early:?}");
        assert_eq!(front.planned(), 0, "it was away for a while");
        let record = rows.store().look(&Scope::new(tenant(), "pay", key())).await.unwrap().unwrap().record;
        if arrives {
            assert!(matches!(at_last, Outcome::Done { reply, .. } if reply == paid()));
            assert_eq!((rows.rows().await, record.status.name()), (vec!["paid".to_owned()], StatusName::Completed));
        } else {
            assert!(matches!(at_last, Outcome::Failed { reply: None, .. }), "{at_last:?}");
            assert_eq!((rows.rows().await, record.status.name()), (vec![], StatusName::FailedRetryable));
        }
    }
}

/// Whatever the work does after its commit: what was stored is what every client gets.
pub(crate) async fn a_committed_answer_is_the_answer<R: Rows>() {
    for turn in 0..3 {
        let bench = Bench::<R>::new().await;
        let done = bench.run(5, async |claim| {
            let mut tx = bench.rows.begin().await;
            bench.rows.insert(&mut tx, "paid").await?;
            let _committed = claim.commit(tx, paid()).await?;
            match turn {
                0 => Err("after the commit".into()),
                1 => Ok(Reply::status(500)),
                _ => panic!("on purpose"),
            }
        });
        assert!(matches!(done.await, Outcome::Done { reply, .. } if reply == paid()), "{turn}");
    }
}

pub(crate) async fn outcomes_ride_on_the_commit<R: Rows>() {
    let bench = Bench::<R>::new().await;
    let done = bench.run(5, async |claim| {
        let receipt: u32 = claim.call("charge", |_| async { Ok::<_, Broken>(7) }).await?;
        let mut tx = bench.rows.begin().await;
        bench.rows.insert(&mut tx, "paid").await?;
        claim.makes("payment", "pay_1").await;
        Ok(claim.commit(tx, paid().body(receipt.to_string())).await?.into())
    });
    assert!(matches!(done.await, Outcome::Done { .. }));
    let record = bench.record().await;
    assert_eq!(record.calls[0].state, CallState::Applied(b"7".to_vec()));
    assert_eq!(record.resource.map(|resource| resource.id), Some("pay_1".to_owned()));
}

//! What a queue is told of each end of a message's work.

use std::time::{Duration, SystemTime};

use idem_core::consumer::{DeadLetter, Delivery};
use idem_core::{
    Answer, Engine, Failure, IdempotentCommand, MemoryStore, Original, Outcome, Reply, StatusName, StoreError,
    StoredResponse, Tenant,
};

const WAIT: Duration = Duration::from_secs(7);
const THEN: SystemTime = SystemTime::UNIX_EPOCH;

fn stored(status: u16) -> StoredResponse {
    StoredResponse { status, headers: Vec::new(), body: None }
}

fn done(status: u16) -> Result<Outcome, StoreError> {
    Ok(Outcome::Done { reply: Reply::status(status), expires_at: THEN })
}

fn second(answer: Answer) -> Result<Outcome, StoreError> {
    Ok(Outcome::Second(answer))
}

fn broken() -> Box<dyn std::error::Error + Send + Sync> {
    "broken".into()
}

#[test]
fn each_end_of_the_work_tells_the_queue_what_to_do() {
    let later = Delivery::Later(WAIT);
    let dead = Delivery::DeadLetter;
    let original = Original {
        state: StatusName::Completed,
        created_at: THEN,
        resource: None,
        status: None,
        location: None,
        safe_new_key: false,
    };
    let replay = |status| second(Answer::Replay { response: stored(status), expires_at: THEN });
    let not_kept = |status| second(Answer::NotKept { response: stored(status), resource: None, expires_at: THEN });
    for (ran, told) in [
        (done(201), Delivery::Ack),
        (done(303), Delivery::Ack),
        (done(402), dead(DeadLetter::Refused(402))),
        (done(500), dead(DeadLetter::Refused(500))),
        (Ok(Outcome::Failed { reply: Some(Reply::status(422)), retry_after: WAIT }), later),
        (Ok(Outcome::Unknown { reply: Some(Reply::status(201)), retry_after: WAIT }), later),
        (Ok(Outcome::NotStored { retry_after: WAIT }), later),
        (replay(201), Delivery::Ack),
        (replay(402), dead(DeadLetter::Refused(402))),
        (not_kept(201), Delivery::Ack),
        (not_kept(409), dead(DeadLetter::Refused(409))),
        (second(Answer::Mismatch(original)), dead(DeadLetter::Mismatch)),
        (second(Answer::InProgress { retry_after: WAIT }), later),
        (second(Answer::RetryLater { retry_after: WAIT }), later),
        (second(Answer::OutcomeUnknown { retry_after: WAIT }), later),
        (second(Answer::Unresolved { resource: None }), dead(DeadLetter::Unresolved)),
        (second(Answer::Expired { resource: None }), dead(DeadLetter::Expired)),
        (second(Answer::ContractUnknown { retry_after: WAIT }), later),
        (second(Answer::ContractRetired { resource: None }), dead(DeadLetter::ContractRetired)),
        (Err(StoreError::Unavailable(broken())), Delivery::Later(Duration::from_secs(5))),
        (Err(StoreError::Unusable(broken())), Delivery::Later(Duration::from_secs(60))),
        (Err(StoreError::Unreadable("status")), dead(DeadLetter::RecordUnreadable)),
    ] {
        assert_eq!(Delivery::of(&ran), told, "{ran:?}");
    }
}

/// The page of the documentation names each reason, and no other.
#[test]
fn the_documentation_has_every_reason() {
    let page = include_str!("../../../docs/consumers.md");
    let reasons = [
        DeadLetter::Refused(402),
        DeadLetter::Mismatch,
        DeadLetter::Unresolved,
        DeadLetter::Expired,
        DeadLetter::ContractRetired,
        DeadLetter::RecordUnreadable,
    ];
    for reason in reasons {
        assert!(page.contains(&format!("`{}`", reason.code())), "{} is not in the page", reason.code());
    }
    assert_eq!(page.matches("dead letter `DEAD_").count(), reasons.len());
}

#[derive(IdempotentCommand)]
#[idem(operation = "enter_in_ledger", version = 1)]
struct Enter {
    payment: String,
}

/// What is delivered once more gets what it got before: a refused message does not pass as done.
#[tokio::test]
async fn a_message_delivered_three_times_is_told_the_same_three_times() {
    let engine = Engine::builder(MemoryStore::new()).build().unwrap();
    for (payment, refused, told) in
        [("pay_1", false, Delivery::Ack), ("pay_2", true, Delivery::DeadLetter(DeadLetter::Refused(404)))]
    {
        let mut entries = 0;
        for _ in 0..3 {
            let (tenant, key) = (Tenant::new("ledger").unwrap(), payment.parse().unwrap());
            let command = Enter { payment: payment.to_owned() };
            let ran = engine
                .run(&tenant, &key, &command, |_| async {
                    entries += 1;
                    if refused { Err(Failure::reply(Reply::status(404))) } else { Ok(Reply::status(204)) }
                })
                .await;
            assert_eq!(Delivery::of(&ran), told);
        }
        assert_eq!(entries, 1);
    }
}

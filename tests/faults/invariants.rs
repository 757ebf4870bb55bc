//! What must be true of a payment, whatever happened on the way.

use std::time::Duration;

use idem_core::StatusName;
use idem_core::consumer::{DeadLetter, Delivery};
use payments::provider::Kind;
use tokio::time::timeout;

use crate::history::{History, What};
use crate::home::Home;
use crate::service::{Service, pay};

/// The client comes back until it has a definite answer; that answer, and what must be true of it.
pub(crate) async fn answered<H: Home>(name: &str, history: &History, service: &Service<H>, key: &str) -> Delivery {
    history.add(What::Invoke, key, "comes back");
    let answer = timeout(Duration::from_secs(60), service.settled(key, &pay(key))).await;
    let what = match answer {
        Ok(Delivery::Ack) => What::Ok,
        Ok(_) => What::Fail,
        Err(_) => What::Info,
    };
    history.add(what, key, format!("{answer:?}"));
    let story = || format!("{name}: {key}\n{}", history.of(key));
    let answer = answer.unwrap_or_else(|_| panic!("no definite answer\n{}", story()));
    let (charges, booked) = (service.charges(key).await, service.booked(key).await);
    let record = service.record(key).await.unwrap();
    assert!(charges <= 1, "{charges} charges\n{}", story());
    match answer {
        Delivery::Ack => {
            assert_eq!((charges, booked), (1, 1), "charges and bookings of a payment that is done\n{}", story());
            assert_eq!(record.status.name(), StatusName::Completed, "{}", story());
        }
        Delivery::DeadLetter(DeadLetter::Unresolved) if service.kind() == Kind::Neither => {
            assert_eq!(booked, 0, "a booking of a payment that nobody knows of\n{}", story());
        }
        other => panic!("{other:?}\n{}", story()),
    }
    let again = service.settled(key, &pay(key)).await;
    assert_eq!(again, answer, "the second answer is another one\n{}", story());
    let asked = service.asked(key).await;
    assert!(asked <= i64::try_from(record.fence.get()).unwrap(), "{asked} calls of fewer owners\n{}", story());
    answer
}

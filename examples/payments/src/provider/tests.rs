//! The fake is worth what it does as a real provider does it.

use super::*;

async fn books(retention: Option<Duration>) -> (Books, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Books::open(&folder.path().join("provider.sqlite"), retention).await.unwrap(), folder)
}

fn order(amount: i64) -> Order {
    Order {
        key: DownstreamKey::from_stored("charge_1".into()),
        account: "acc_1".into(),
        amount: Decimal::new(amount, 2),
        currency: "eur".into(),
        command: CommandHash::from_parts(1, 1, [7; 32]).unwrap(),
    }
}

#[tokio::test]
async fn a_key_charges_once_within_the_retention() {
    let (books, _folder) = books(Some(RETENTION)).await;
    let first = books.book(&order(1000), None).await.unwrap();
    let second = books.book(&order(1000), None).await.unwrap();
    assert_eq!((second.id, second.asked), (first.id, 2));
    assert_eq!(books.charges().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_of_another_charge_is_refused_and_charges_nothing() {
    let (books, _folder) = books(Some(RETENTION)).await;
    books.book(&order(1000), None).await.unwrap();
    let other_command = Order { command: CommandHash::from_parts(1, 1, [8; 32]).unwrap(), ..order(1000) };
    for other in [order(9900), Order { account: "acc_2".into(), ..order(1000) }, other_command] {
        assert!(matches!(books.book(&other, None).await, Err(ProviderError::OtherCharge)));
    }
    let charges = books.charges().await.unwrap();
    assert_eq!((charges.len(), charges[0].asked), (1, 1));
}

#[tokio::test]
async fn after_its_retention_a_key_is_forgotten_and_charges_again() {
    let (books, _folder) = books(Some(Duration::ZERO)).await;
    books.book(&order(1000), None).await.unwrap();
    books.book(&order(1000), None).await.unwrap();
    assert_eq!(books.charges().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_provider_that_does_not_dedupe_charges_each_time_and_knows_the_last() {
    let (books, _folder) = books(None).await;
    assert!(books.find("charge_1").await.unwrap().is_none());
    books.book(&order(1000), None).await.unwrap();
    let last = books.book(&order(1000), None).await.unwrap();
    assert_eq!(books.charges().await.unwrap().len(), 2);
    assert_eq!(books.find("charge_1").await.unwrap().map(|found| found.id), Some(last.id));
}

#[tokio::test]
async fn a_charge_goes_on_when_the_caller_has_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("provider.sqlite");
    let provider = Arc::new(Provider::open(&file, Kind::QueryOnly, Duration::from_millis(20)).await.unwrap());
    provider.prepare(Trouble::of(Fault::Overtaken));
    assert!(matches!(provider.charge(order(1000)).await, Err(ProviderError::TimedOut)));
    // It arrives right after the provider has said that it has not arrived.
    assert!(provider.find(&order(1000).key).await.unwrap().is_none());
    for _ in 0..1000 {
        if provider.find(&order(1000).key).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the charge never arrived");
}

#[tokio::test]
async fn trouble_waits_for_its_turn_and_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("provider.sqlite");
    let provider = Arc::new(Provider::open(&file, Kind::Dedupes, Duration::from_secs(10)).await.unwrap());
    provider.prepare(Trouble { after: 1, ..Trouble::of(Fault::LostAnswer) });
    assert!(provider.charge(order(1000)).await.is_ok());
    assert!(provider.is_prepared());
    assert!(matches!(provider.charge(order(1000)).await, Err(ProviderError::NoAnswer)));
    assert!(!provider.is_prepared());
    assert!(provider.charge(order(1000)).await.is_ok());
}

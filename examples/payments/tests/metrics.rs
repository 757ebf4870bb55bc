//! What the service tells of itself.

use std::time::Duration;

use payments::service::Service;
use payments::setup::Setup;

#[tokio::test]
async fn a_payment_and_its_replay_are_counted() {
    let data = tempfile::tempdir().unwrap();
    let service = Service::start(([127, 0, 0, 1], 0).into(), data.path(), &Setup::default()).await.unwrap();
    let url = format!("http://{}", service.address());
    let client = reqwest::Client::new();
    for _ in 0..2 {
        let request = client.post(format!("{url}/payments")).header("authorization", "Bearer acme-test-key");
        let request = request.header("idempotency-key", "order-1041").json(&serde_json::json!({
            "account_id": "acc_1", "amount": "10.00", "currency": "EUR", "merchant_reference": "order-1041",
        }));
        assert_eq!(request.send().await.unwrap().status(), 201);
    }
    let numbers = client.get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
    for line in [
        r#"idempotency_claim_count{operation="create_payment",how="first"} 1"#,
        r#"idempotency_call_count{operation="create_payment",call="charge",fate="applied"} 1"#,
        r#"idempotency_end_count{operation="create_payment",status="completed"} 1"#,
        r#"idempotency_replay_count{operation="create_payment"} 1"#,
    ] {
        assert!(numbers.lines().any(|found| found == line), "{line} is not in\n{numbers}");
    }
    service.stop(Duration::from_secs(5)).await;
}

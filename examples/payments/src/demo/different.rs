//! What is not the same command, or none.

use super::Error;
use super::client::{Client, MISMATCH, payment};
use super::report::Scene;

pub(super) async fn other_amount(client: &Client) -> Result<Scene, Error> {
    let got = client.pay_each("amount", [payment("amount", "10.00"), payment("amount", "99.00")]).await?;
    client.scene("amount", "another amount under the key", got, vec!["201", MISMATCH], 1).await
}

pub(super) async fn third_decimal(client: &Client) -> Result<Scene, Error> {
    let got = client.pay_each("third", [payment("third", "10.00"), payment("third", "10.005")]).await?;
    client.scene("third", "10.005 after 10.00: nothing is rounded", got, vec!["201", MISMATCH], 1).await
}

pub(super) async fn fractional_number(client: &Client) -> Result<Scene, Error> {
    let number = payment("fraction", "10.25").replace("\"10.25\"", "10.25");
    let got = client.pay_each("fraction", [number, payment("fraction", "10.25")]).await?;
    let expected = vec!["422 IDEMPOTENCY_REQUEST_INVALID", "201"];
    client.scene("fraction", "10.25 as a JSON number, then as text", got, expected, 1).await
}

pub(super) async fn malformed_then_right(client: &Client) -> Result<Scene, Error> {
    let broken = r#"{"account_id":"#.to_owned();
    let got = client.pay_each("malformed", [broken, payment("malformed", "10.00")]).await?;
    let expected = vec!["400 IDEMPOTENCY_REQUEST_INVALID", "201"];
    client.scene("malformed", "broken JSON, then the right body", got, expected, 1).await
}

pub(super) async fn another_tenant(client: &Client) -> Result<Scene, Error> {
    let body = || payment("tenant", "10.00");
    let got = vec![client.pay("acme", "tenant", body()).await?, client.pay("globex", "tenant", body()).await?];
    client.scene("tenant", "another tenant, the same key", got, vec!["201", "201"], 2).await
}

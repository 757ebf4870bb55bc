//! What others hear of a payment, more than once.

use super::Error;
use super::client::{Client, payment};
use super::report::Scene;

/// The bus delivers each message three times, to two consumers.
pub(super) async fn delivered_thrice(client: &Client) -> Result<Scene, Error> {
    let got = client.pay_each("events", [payment("events", "10.00"), payment("events", "10.00")]).await?;
    let heard = client.heard(&client.paid("events").await?.id).await?;
    let effects = format!(
        "{} deliveries: {} ledger entry, {} e-mail, {} notification",
        heard.deliveries, heard.entries, heard.emails, heard.notifications
    );
    let got = [got, vec![effects]].concat();
    let expected = vec!["201", "201 replayed", "3 deliveries: 1 ledger entry, 1 e-mail, 1 notification"];
    client.scene("events", "its event is delivered three times", got, expected, 1).await
}
